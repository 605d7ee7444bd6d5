import { jest } from '@jest/globals';
import { SystemClock } from '../../lib/system/system-ports.js';

describe('The system clock', () => {
  const day = 86_400_000;
  let warnings: string[];
  const onWarning = (warning: Error) => warnings.push(warning.name);

  beforeEach(() => {
    warnings = [];
    process.on('warning', onWarning);
    jest.useFakeTimers({ now: 1_000 });
  });
  afterEach(() => {
    jest.useRealTimers();
    process.off('warning', onWarning);
  });

  it('tells epoch milliseconds', () => {
    expect(new SystemClock().now()).toBe(1_000);
  });

  it('I12: a deadline does not move when the wall clock is set back, and a machine that was suspended has missed it', () => {
    const clock = new SystemClock();
    const begun = clock.elapsed();
    jest.advanceTimersByTime(1_000);
    jest.setSystemTime(Date.now() - 3_600_000);
    expect(clock.elapsed() - begun).toBe(1_000);
    jest.advanceTimersByTime(1_000);
    expect(clock.elapsed() - begun).toBe(2_000);
    // The monotonic clock of Linux stood still meanwhile.
    jest.setSystemTime(Date.now() + 60_000);
    expect(clock.elapsed() - begun).toBe(62_000);
    jest.advanceTimersByTime(1_000);
    expect(clock.elapsed() - begun).toBe(63_000);
  });

  it('calls back once, not before its time', () => {
    const callback = jest.fn();
    new SystemClock().after(1_000, callback);
    jest.advanceTimersByTime(999);
    expect(callback).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    jest.advanceTimersByTime(10_000);
    expect(callback).toHaveBeenCalledTimes(1);
  });

  // B135
  it('waits longer than a platform timer can', () => {
    const callback = jest.fn();
    const setTimeoutSpy = jest.spyOn(globalThis, 'setTimeout');
    new SystemClock().after(100 * day, callback);
    jest.advanceTimersByTime(100 * day - 1);
    expect(callback).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledTimes(1);
    expect(setTimeoutSpy.mock.calls.map(([, ms]) => ms as number).every((ms) => ms <= 2 ** 31 - 1)).toBe(true);
  });

  it('can be cancelled at any time, again and late', () => {
    const callback = jest.fn();
    const cancel = new SystemClock().after(40 * day, callback);
    jest.advanceTimersByTime(30 * day);
    cancel();
    cancel();
    jest.advanceTimersByTime(30 * day);
    expect(callback).not.toHaveBeenCalled();

    const late = new SystemClock().after(1, callback);
    jest.advanceTimersByTime(1);
    late();
    expect(callback).toHaveBeenCalledTimes(1);
  });

  it.each([0, -5, NaN])('takes %d as now, yet never calls back synchronously', (ms) => {
    const callback = jest.fn();
    new SystemClock().after(ms, callback);
    expect(callback).not.toHaveBeenCalled();
    jest.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledTimes(1);
  });

  // B135
  it('arms a real timer that neither warns nor keeps the process alive', async () => {
    jest.useRealTimers();
    const timers: NodeJS.Timeout[] = [];
    const real = globalThis.setTimeout;
    const spy = jest.spyOn(globalThis, 'setTimeout').mockImplementation((callback: () => void, ms?: number) => {
      const timer = real(callback, ms);
      timers.push(timer);
      return timer;
    });
    const cancels = [2 ** 31, 1e15, Infinity].map((ms) => new SystemClock().after(ms, () => undefined));
    spy.mockRestore();
    expect(timers.map((timer) => timer.hasRef())).toEqual([false, false, false]);
    cancels.forEach((cancel) => cancel());
    await new Promise((resolve) => setImmediate(resolve));
    expect(warnings).not.toContain('TimeoutOverflowWarning');
  });
});
