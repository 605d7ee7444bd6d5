/** All versions of the schema, in order. */
import { initialStep } from './001-initial.js';
import type { SchemaStep } from './schema-step.js';

export const SCHEMA_STEPS: readonly SchemaStep[] = [initialStep];
