// Decorators by hand: this application runs as plain JavaScript, like that of a user without TypeScript.
import { AgentTool, RecoverTool } from 'nestjs-agent-runs';

const ORDER = { type: 'object', properties: { order: { type: 'string' } }, required: ['order'] };

export function declareTool(type, name, recovery, options = {}) {
  decorate(type, name, AgentTool({ name, description: `Does ${name}.`, input: ORDER, recovery, ...options }));
}

export function declareProbe(type, method, tool) {
  decorate(type, method, RecoverTool(tool));
}

function decorate(type, method, decorator) {
  decorator(type.prototype, method, Object.getOwnPropertyDescriptor(type.prototype, method));
}
