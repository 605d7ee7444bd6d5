// The agents of a racer. Their model plays the script that stands in the prompt; their tools tell the parent what they have done.
import { Agent, AgentTool } from 'nestjs-agent-runs';

const INPUT = { type: 'object', properties: { ms: { type: 'integer' }, gate: { type: 'string' } } };

/** @param note tells the parent */
export function declareAgents({ note, gates, ledger }) {
  class Tools {
    /** Something that must not happen twice. */
    pay(_input, { operationId }) {
      note({ tool: 'pay', operationId });
      return 'paid';
    }

    /** The same, for a person to allow. */
    refund(_input, { operationId }) {
      note({ tool: 'refund', operationId });
      return 'refunded';
    }

    /** The same, to be allowed within `ms`. */
    settle(_input, { operationId }) {
      note({ tool: 'settle', operationId });
      return 'settled';
    }

    /** Takes its time, until its gate is opened. */
    async look({ gate }, { operationId }) {
      note({ tool: 'look', operationId });
      await gates.passed(gate);
      return 'seen';
    }

    /** Leaves a line outside of all journals. */
    async enter(_input, { operationId }) {
      await ledger(operationId);
      return 'entered';
    }
  }
  const approval = ({ ms }) => ({ expiresIn: ms });
  declareTool(Tools, 'pay', { recovery: 'manual' });
  declareTool(Tools, 'refund', { recovery: 'manual', approval: true });
  declareTool(Tools, 'settle', { recovery: 'manual', approval });
  declareTool(Tools, 'look', { recovery: 'safe' });
  declareTool(Tools, 'enter', { recovery: 'manual' });

  class Desk {}
  Agent({ name: 'desk', version: '1', instructions: 'Do as the script says.', tools: [Tools] })(Desk);
  return [Tools, Desk];
}

function declareTool(type, name, options) {
  const decorator = AgentTool({ name, description: `Does ${name}.`, input: INPUT, ...options });
  decorator(type.prototype, name, Object.getOwnPropertyDescriptor(type.prototype, name));
}
