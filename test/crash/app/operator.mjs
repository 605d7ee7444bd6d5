// The person who is asked when nobody else can know: looks the effect up in the world and says what is so.
export async function resolveByLookingItUp(run, runs, world) {
  for (const key of run.attention.operations ?? []) {
    const effect = world
      .facts()
      .find(({ fact, operationId }) => fact === 'effect' && operationId === `${run.id}/${key}`);
    const receipt = effect && world.find(effect.tool, effect.operationId);
    const way = receipt ? { output: receipt } : { notHappened: true };
    await runs.resolveTool(run.id, { key, by: 'operator', ...way });
  }
}
