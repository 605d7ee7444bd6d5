export interface HostKind {
  adapter: 'express' | 'fastify';
  database: 'sqlite' | 'mariadb' | 'postgres';
  /** Whether it has `@nestjs/schedule`. Default true. */
  schedule?: boolean;
}

export interface HostToRun {
  /** The compiled application; what it writes stands beside it. */
  main: string;
  /** Default: this process's. */
  node?: string;
  /** `DATABASE` is its file or URL. */
  env: Record<string, string>;
}

export function hostSource(host: HostKind): string;
export function transpiledHost(host: HostKind, format: 'cjs' | 'esm'): string;
export function mainJob(host: HostToRun): Promise<typeof DONE>;
export const DONE: {
  afterKill: { attempt: number; recoveries: number; refunds: number };
  afterTerm: { recoveries: number; refunds: number; exit: string | number };
  close: string | number;
};
