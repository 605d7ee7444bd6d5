import { Inject } from '@nestjs/common';

/** Injects the store that this application's runs live in, whichever it is. */
export const InjectRunStore = (): PropertyDecorator & ParameterDecorator => Inject(AGENT_RUNS_STORE);

/** The store in use: the `RunStore` that the host provides, else one in memory. Exported by `AgentRunsModule`. */
export const AGENT_RUNS_STORE = Symbol.for('nestjs-agent-runs:store');
