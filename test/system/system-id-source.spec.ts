import { jest } from '@jest/globals';
import { SystemIdSource } from '../../lib/system/system-ports.js';

describe('The system id source', () => {
  const source = new SystemIdSource();
  afterEach(() => void jest.restoreAllMocks());

  it('gives UUIDv7 in ascending order, within a millisecond and across a clock that is set back', () => {
    const later = Date.now() + 60_000;
    const now = jest.spyOn(Date, 'now').mockReturnValue(later);
    const ids = Array.from({ length: 2_000 }, () => source.id());
    now.mockReturnValue(later - 3_600_000);
    ids.push(...Array.from({ length: 2_000 }, () => source.id()));
    expect(ids.every((id) => /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(id))).toBe(
      true,
    );
    expect(new Set(ids).size).toBe(ids.length);
    expect([...ids].sort()).toEqual(ids);
  });

  it('goes on in the next millisecond when the counter of one is full, in ascending order over all instances', () => {
    const at = Date.now() + 10_800_000;
    jest.spyOn(Date, 'now').mockReturnValue(at);
    const first = source.id();
    Object.assign(SystemIdSource, { count: 2 ** 26 - 2 });
    const ids = [first, new SystemIdSource().id(), source.id(), new SystemIdSource().id()];
    expect(ids.map((id) => parseInt(id.replace('-', '').slice(0, 12), 16) - at)).toEqual([0, 0, 1, 1]);
    expect([...ids].sort()).toEqual(ids);
  });

  it('carries the time of its making', () => {
    const at = Date.now() + 14_400_000;
    jest.spyOn(Date, 'now').mockReturnValue(at);
    expect(parseInt(source.id().replace('-', '').slice(0, 12), 16)).toBe(at);
  });

  it('draws numbers in [0, 1)', () => {
    const draws = Array.from({ length: 1_000 }, () => source.random());
    expect(draws.every((draw) => draw >= 0 && draw < 1)).toBe(true);
    expect(new Set(draws).size).toBeGreaterThan(900);
  });
});
