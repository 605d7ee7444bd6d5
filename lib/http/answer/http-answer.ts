/** What a route answers where the status or a header depends on what happened. Rendered by the answer interceptor on every adapter. */
export class HttpAnswer<T> {
  constructor(
    readonly status: number,
    readonly body: T,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {}
}
