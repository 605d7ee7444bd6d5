import 'reflect-metadata';
import { Logger, ValidationPipe } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { SettingsError } from './settings/environment.reader.js';

async function bootstrap(): Promise<void> {
  // Imported here, so that a wrong setting is an answer of ours and not a stack trace.
  const { AppModule } = await import('./app.module.js');
  const { settings } = await import('./settings/current.settings.js');
  const app = await NestFactory.create(AppModule, { logger: settings.logLevels });
  app.useGlobalPipes(new ValidationPipe({ whitelist: true, forbidNonWhitelisted: true }));
  // SIGTERM lets calls in flight finish and hands the runs over.
  app.enableShutdownHooks();
  await app.listen(settings.port);
  new Logger('Bootstrap').log(`The support desk listens on ${await app.getUrl()}`);
}

bootstrap().catch((error: unknown) => {
  const logger = new Logger('Bootstrap');
  if (error instanceof SettingsError) for (const problem of error.problems) logger.fatal(problem);
  else logger.fatal(error instanceof Error ? (error.stack ?? error.message) : error);
  process.exit(1);
});
