/** An AbortController whose signal is made when somebody asks for it, which costs more than all else of a call that nobody stops. */
export class StopSwitch {
  private controller: AbortController | null = null;
  private stopped: { reason: Error } | null = null;

  get isAborted(): boolean {
    return this.stopped !== null;
  }

  get signal(): AbortSignal {
    if (!this.controller) {
      this.controller = new AbortController();
      if (this.stopped) this.controller.abort(this.stopped.reason);
    }
    return this.controller.signal;
  }

  abort(reason: Error): void {
    this.stopped ??= { reason };
    this.controller?.abort(reason);
  }
}
