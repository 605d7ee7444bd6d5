// Jest's global set-up for the suites that drive the built package.
import { ensureBuilt } from './build.mjs';

export default async function setUp() {
  await ensureBuilt();
}
