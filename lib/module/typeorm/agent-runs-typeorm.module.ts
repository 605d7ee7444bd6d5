import { type DynamicModule, Logger, Module } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { getDataSourceToken } from '@nestjs/typeorm';
import type { DataSource, DataSourceOptions, EntityManager } from 'typeorm';
import { type Duration, parseTimerDuration } from '../../contracts/duration.js';
import { RunStore } from '../../contracts/ports/run-store.port.js';
import { InvalidConfigurationError } from '../../errors/configuration.errors.js';
import { TypeOrmRunStore } from '../../stores/typeorm/typeorm-run.store.js';
import { AGENT_RUNS_STORE_CHECK, type StoreCheck } from '../agent-runs-module.tokens.js';
import type { ToolContext as OpaqueToolContext } from '../../contracts/ports/tool-caller.port.js';
import type { StartContext as OpaqueStartContext } from '../../contracts/run-requests.js';

/** What `AgentRunsTypeOrmModule.forRoot` takes. */
export interface AgentRunsTypeOrmOptions {
  /** The name of the host's data source, as given to `TypeOrmModule.forRoot`. Default `default`. */
  dataSource?: string;
  /** Create or migrate the tables at boot, under a lock of the database. Default: true unless `NODE_ENV` is `production`. */
  migrate?: boolean;
  /** How long one operation of the store may take in all. Default `10s`, at most 24 days; a sixth of the lease is a good value. */
  statementTimeout?: Duration;
}

const OPTION_KEYS = ['dataSource', 'migrate', 'statementTimeout'];

/** Keeps runs in the host's own database, over its own TypeORM data source: no connection, entity or `synchronize` of ours. Global. */
@Module({})
export class AgentRunsTypeOrmModule {
  /** @throws InvalidConfigurationError for unknown options or a `statementTimeout` that is no duration or longer than 24 days */
  static forRoot(options: AgentRunsTypeOrmOptions = {}): DynamicModule {
    checkKeys(options);
    const { dataSource = 'default', migrate, statementTimeout } = options;
    const statementTimeoutMs =
      statementTimeout === undefined
        ? undefined
        : parseTimerDuration(statementTimeout, 'AgentRunsTypeOrmModule.forRoot: statementTimeout');
    const token = getDataSourceToken(dataSource);
    return {
      module: AgentRunsTypeOrmModule,
      global: true,
      providers: [
        {
          provide: RunStore,
          useFactory: async (modules: ModulesContainer, source?: DataSource) =>
            new TypeOrmRunStore(source ?? (await missing(dataSource, modules)), {
              ...(migrate !== undefined && { migrate }),
              ...(statementTimeoutMs !== undefined && { statementTimeoutMs }),
              onWarning: (message) => new Logger('AgentRuns').warn(message),
            }),
          inject: [ModulesContainer, { token, optional: true }],
        },
        { provide: AGENT_RUNS_STORE_CHECK, useFactory: poolCheck, inject: [{ token, optional: true }] },
      ],
      exports: [RunStore, AGENT_RUNS_STORE_CHECK],
    };
  }
}

/**
 * One that is provided and could not be made says why itself, and ends the boot.
 * @throws InvalidConfigurationError where no module provides it
 */
function missing(name: string, modules: ModulesContainer): Promise<never> {
  const token = getDataSourceToken(name);
  if ([...modules.values()].some(({ providers }) => providers.has(token))) return new Promise(() => undefined);
  const advice = name === 'default' ? '' : ` with name: '${name}'`;
  throw new InvalidConfigurationError([
    `AgentRunsTypeOrmModule.forRoot: there is no data source "${name}". Import TypeOrmModule.forRoot${advice}, or give the name of yours as the option dataSource.`,
  ]);
}

/** A transactional tool holds one connection while our own statements need another. */
function poolCheck(source?: DataSource): StoreCheck {
  return ({ transactionalTools }) => {
    if (!source) return [];
    const size = connectionPoolSize(source.options);
    if (size === null || size >= 2 || transactionalTools.length === 0) return [];
    return [
      `The data source has a pool of ${size} connection, and ${transactionalTools.join(', ')} has recovery 'transactional'. Such a tool holds one connection while the store needs another: set poolSize to 2 or more.`,
    ];
  };
}

function checkKeys(options: AgentRunsTypeOrmOptions): void {
  const unknown = Object.keys(options).filter((key) => !OPTION_KEYS.includes(key));
  if (unknown.length > 0) {
    throw new InvalidConfigurationError(
      unknown.map(
        (key) => `AgentRunsTypeOrmModule.forRoot: there is no option "${key}"; known are ${OPTION_KEYS.join(', ')}.`,
      ),
    );
  }
}

/** What the drivers of TypeORM take for their pool, and their default. */
const DRIVER_DEFAULT = 10;

/** Connections of a data source's pool; null where there is none (SQLite). */
export function connectionPoolSize(options: DataSourceOptions): number | null {
  if (/sqlite|sqljs|expo|capacitor/.test(options.type)) return null;
  const { poolSize, extra } = options as { poolSize?: number; extra?: { max?: number; connectionLimit?: number } };
  // `extra` is spread over what TypeORM sets, so it wins.
  return Number(extra?.connectionLimit ?? extra?.max ?? poolSize ?? DRIVER_DEFAULT);
}

/** The same types as in the main entry point, with TypeORM's `EntityManager` where that says `unknown`: the main entry point imports no TypeORM. */

/** The context of a `transactional` tool. */
export interface ToolContext extends OpaqueToolContext {
  /** Writes through it commit together with the record of the call, or not at all. Throws once the method has settled. */
  manager: EntityManager;
}

/** What a start is part of; as in the main entry point, with the type of the transaction. */
export interface StartContext extends OpaqueStartContext {
  /** The host's open transaction: the run exists only if it commits. */
  transaction?: EntityManager;
}
