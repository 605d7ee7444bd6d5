import { KnownPlaces } from '../../../lib/stores/typeorm/known-places.js';

const append = (firstSequence: number, attempt = 1, count = 2) => ({
  runId: 'run-1',
  attempt,
  firstSequence,
  count,
  totals: '{}',
  entries: '[]',
  isNext: false,
});

describe('the places a process knows of', () => {
  it('decision 3: are learned from its commits, and hold for one attempt', () => {
    const places = new KnownPlaces();
    expect(places.isNext(append(1))).toBe(false);
    places.learn({ id: 'run-1', status: 'running', attempt: 1, sequence: 4 });
    expect([places.isNext(append(5)), places.isNext(append(6)), places.isNext(append(5, 2))]).toEqual([
      true,
      false,
      false,
    ]);
    places.advance(append(5));
    expect([places.isNext(append(5)), places.isNext(append(7))]).toEqual([false, true]);
  });

  it('decision 3: are forgotten when a run is no longer running, and after a failure', () => {
    const places = new KnownPlaces();
    places.learn({ id: 'run-1', status: 'running', attempt: 1, sequence: 4 });
    places.learn({ id: 'run-1', status: 'waiting', attempt: 1, sequence: 5 });
    expect(places.isNext(append(6))).toBe(false);
    places.advance(append(6));
    places.forget('run-1');
    expect(places.isNext(append(8))).toBe(false);
  });

  it('decision 3: are bounded: the oldest are forgotten', () => {
    const places = new KnownPlaces();
    for (let n = 0; n <= 10_000; n += 1) places.learn({ id: `run-${n}`, status: 'running', attempt: 1, sequence: 1 });
    const isNext = (runId: string): boolean => places.isNext({ runId, attempt: 1, firstSequence: 2 });
    expect([isNext('run-0'), isNext('run-1'), isNext('run-10000')]).toEqual([false, true, true]);
  });
});
