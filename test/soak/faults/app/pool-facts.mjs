// What the host's pool says about itself, the same for both drivers.
export function poolFacts({ driver }) {
  const { master, pool } = driver;
  if (master) return { open: master.totalCount, idle: master.idleCount, waiting: master.waitingCount };
  return {
    open: pool._allConnections.length,
    idle: pool._freeConnections.length,
    waiting: pool._connectionQueue.length,
  };
}
