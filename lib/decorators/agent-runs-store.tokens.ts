/** The store in use: the `RunStore` that the host provides, else one in memory. Exported by `AgentRunsModule`. */
export const AGENT_RUNS_STORE = Symbol.for('nestjs-agent-runs:store');
