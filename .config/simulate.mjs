// npm run simulate -- --seeds N [--from N] [--only I3] [--seconds S] [--defect NAME]
import { register } from 'node:module';

register('./simulate-hooks.mjs', import.meta.url, { data: { defect: null } });
await import('../test/simulation/main.ts');
