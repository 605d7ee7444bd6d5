import { AgentRunsError } from './agent-runs.error.js';

/** The application cannot start as it is configured. Lists every problem found, not only the first. */
export class InvalidConfigurationError extends AgentRunsError {
  readonly code = 'INVALID_CONFIGURATION';
  readonly family = 'configuration';
  /** Each with the name of the option, class or provider, and what to do. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[], cause?: unknown) {
    super(
      problems.length === 1
        ? (problems[0] as string)
        : `${problems.length} problems:\n${problems.map((problem) => `- ${problem}`).join('\n')}`,
      { cause, details: { problems } },
    );
    this.problems = problems;
  }
}
