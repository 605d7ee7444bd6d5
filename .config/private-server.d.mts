export type ServerName = 'mariadb' | 'postgres';

export interface ServerSettings {
  /** Further arguments of the program. */
  arguments?: readonly string[];
  /** Variables of its environment. */
  environment?: Readonly<Record<string, string>>;
}

/** A database server of our own, from installed binaries, in a directory and on a port of its own. It keeps both over a restart. */
export class PrivateServer {
  static isInstalled(name: ServerName): boolean;
  /** Makes its data directory; it does not run yet. @throws Error when it is not installed */
  static create(name: ServerName): Promise<PrivateServer>;
  get port(): number;
  get url(): string;
  /** Resolves when it answers on its port. Settings are kept for later starts. */
  start(settings?: ServerSettings): Promise<void>;
  /** In good order: clients are told. */
  stop(): Promise<void>;
  /** SIGKILL, to all of its processes. */
  kill(): Promise<void>;
  restart(settings?: ServerSettings): Promise<void>;
  /** Ends it, and removes what it had. */
  dispose(): Promise<void>;
}
