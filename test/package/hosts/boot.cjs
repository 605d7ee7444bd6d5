// Boots the plugin inside a host application and prints which Nest it ran on. The caller passes its own imports, so
// that the same lines run on Nest 11 and 12, from CommonJS and from ESM.
module.exports = async function boot({ common, core, schedule, agentRuns, version }) {
  class HostModule {}
  common.Module({
    imports: [schedule.ScheduleModule.forRoot(), agentRuns.AgentRunsModule.forRoot({})],
  })(HostModule);
  const app = await core.NestFactory.createApplicationContext(HostModule, { logger: false, abortOnError: false });
  const runs = app.get(agentRuns.RunService);
  await app.close();
  process.stdout.write(JSON.stringify({ nest: version.split('.')[0], start: typeof runs.start }));
};
