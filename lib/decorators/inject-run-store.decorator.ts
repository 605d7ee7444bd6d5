import { Inject } from '@nestjs/common';
import { AGENT_RUNS_STORE } from './agent-runs-store.tokens.js';

/** Injects the store that this application's runs live in, whichever it is. */
export const InjectRunStore = (): PropertyDecorator & ParameterDecorator => Inject(AGENT_RUNS_STORE);
