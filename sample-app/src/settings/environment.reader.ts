import type { Duration } from 'nestjs-agent-runs';

/** The application cannot start with these environment variables. */
export class SettingsError extends Error {
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
    this.name = 'SettingsError';
  }
}

/** Reads environment variables and collects what is wrong with them. An empty variable counts as absent. */
export class EnvironmentReader {
  private readonly problems: string[] = [];

  constructor(private readonly environment: NodeJS.ProcessEnv) {}

  report(name: string, problem: string): void {
    this.problems.push(`${name} ${problem}`);
  }

  text(name: string): string | undefined {
    const value = this.environment[name];
    return value === undefined || value === '' ? undefined : value;
  }

  integer(name: string, fallback: number, min: number, max: number): number {
    const value = this.text(name);
    if (value === undefined) return fallback;
    const number = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN;
    if (!(number >= min && number <= max)) {
      this.report(name, `is ${JSON.stringify(value)}. Give a whole number from ${min} to ${max}.`);
    }
    return number;
  }

  choice<T extends string>(name: string, choices: readonly T[], fallback: T): T {
    const value = this.text(name);
    if (value === undefined) return fallback;
    if (!choices.includes(value as T)) {
      this.report(name, `is ${JSON.stringify(value)}. Give one of ${choices.join(', ')}.`);
    }
    return value as T;
  }

  /** Comma-separated; default all. */
  list(name: string, choices: readonly string[]): string[] {
    const value = this.text(name);
    if (value === undefined) return [...choices];
    const items = value.split(',').map((item) => item.trim());
    const unknown = items.filter((item) => !choices.includes(item));
    if (unknown.length > 0) {
      this.report(name, `holds ${JSON.stringify(unknown.join(','))}. Choose from ${choices.join(', ')}.`);
    }
    return [...new Set(items)];
  }

  duration(name: string, fallback: Duration): Duration {
    const value = this.text(name) ?? String(fallback);
    if (!/^\d+(\.\d+)?(ms|s|m|h|d)$/.test(value) || !(Number.parseFloat(value) > 0)) {
      this.report(name, `is ${JSON.stringify(value)}. Give a duration like 250ms, 30s, 10m or 24h.`);
    }
    return value as Duration;
  }

  /** Without its trailing slash; null when absent. */
  httpUrl(name: string): string | null {
    const value = this.text(name);
    if (value === undefined) return null;
    // Not shown: it may hold credentials.
    if (!URL.canParse(value) || !/^https?:$/.test(new URL(value).protocol)) {
      this.report(name, 'is no URL that starts with http:// or https://.');
    }
    return value.replace(/\/+$/, '');
  }

  /** @throws SettingsError */
  finish(): void {
    if (this.problems.length > 0) throw new SettingsError(this.problems);
  }
}
