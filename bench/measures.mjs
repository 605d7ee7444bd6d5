import { measureCost } from './measures/cost.mjs';
import { measureGrowth } from './measures/growth.mjs';
import { measureIdle } from './measures/idle.mjs';
import { measureLatency } from './measures/latency.mjs';
import { measureScaling } from './measures/scaling.mjs';
import { measureSharing } from './measures/sharing.mjs';
import { measureThroughput } from './measures/throughput.mjs';
import { measureWaiting } from './measures/waiting.mjs';

/** In this order, each in an application of its own. */
export const MEASURES = {
  throughput: measureThroughput,
  cost: measureCost,
  growth: measureGrowth,
  latency: measureLatency,
  idle: measureIdle,
  waiting: measureWaiting,
  sharing: measureSharing,
  scaling: measureScaling,
};
