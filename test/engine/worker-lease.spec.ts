import { describe, expect, it } from '@jest/globals';
import { DEFAULT_ENGINE_OPTIONS, type EnginePorts } from '../../lib/engine/engine-ports.js';
import { WorkerLease } from '../../lib/engine/worker-lease.js';
import { BrokenStoreError } from '../../lib/errors/store.errors.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';
import { FailingStore } from '../support/failing-store.js';
import { ManualClock, rest } from '../support/manual-clock.js';

const LEASE_MS = 6_000;

function leaseOver() {
  const clock = new ManualClock();
  const store = new FailingStore(new MemoryRunStore({ clock: () => clock.now() }));
  const told: string[] = [];
  const silent = () => undefined;
  const ports = {
    store,
    clock,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    options: { ...DEFAULT_ENGINE_OPTIONS, leaseMs: LEASE_MS },
  } as unknown as EnginePorts;
  const lease = new WorkerLease(ports, 'worker-1', () => [], {
    onLost: () => told.push('lost'),
    onRegained: () => told.push('regained'),
    onBroken: (error) => told.push(`broken: ${(error as Error).message}`),
  });
  return { clock, store, lease, told };
}

describe("a worker's lease", () => {
  it('OWN-3: is renewed every third of its length by one statement, and ends for us before it ends for the database', async () => {
    const { clock, store, lease, told } = leaseOver();
    expect(lease.isHeld()).toBe(false);
    await lease.start();
    expect(lease.isHeld()).toBe(true);
    await clock.advance(LEASE_MS * 3);
    expect(store.count('heartbeat')).toBe(10);
    expect(lease.isHeld()).toBe(true);
    expect(told).toEqual([]);
  });

  it('OWN-3: a worker that cannot renew lets go before the lease ends, tries on, and says when it has it again', async () => {
    const { clock, store, lease, told } = leaseOver();
    await lease.start();
    store.fail('heartbeat', { times: Number.POSITIVE_INFINITY });
    await clock.advance((LEASE_MS * 5) / 6 - 1);
    expect(told).toEqual([]);
    expect(lease.failure).toContain('STORE_UNAVAILABLE');
    await clock.advance(1);
    expect(told).toEqual(['lost']);
    const [row] = await store.liveWorkers();
    expect(row?.leaseExpiresAt).toBeGreaterThan(clock.now());
    await clock.advance(LEASE_MS);
    expect(lease.isHeld()).toBe(false);
    store.heal();
    await clock.advance(1_000);
    expect(told).toEqual(['lost', 'regained']);
    expect(lease.isHeld()).toBe(true);
    expect(lease.failure).toBeNull();
  });

  it('OWN-3: a renewal that is never answered counts as failed, and later ones are sent all the same (B027)', async () => {
    const { clock, store, lease, told } = leaseOver();
    await lease.start();
    store.hold('heartbeat');
    await clock.advance(LEASE_MS * 2);
    expect(told).toEqual([]);
    expect(lease.isHeld()).toBe(true);
    for (let beat = 0; beat < 4; beat++) store.hold('heartbeat');
    await clock.advance(LEASE_MS);
    expect(told).toEqual(['lost']);
    await clock.advance(LEASE_MS);
    expect(told).toEqual(['lost', 'regained']);
    expect(lease.isHeld()).toBe(true);
  });

  it('OPS-1: a lease that ran out is told as the reason, also when its renewal hangs', async () => {
    const { clock, store, lease } = leaseOver();
    await lease.start();
    for (let beat = 0; beat < 20; beat++) store.hold('heartbeat');
    await clock.advance(LEASE_MS);
    expect(lease.isHeld()).toBe(false);
    expect(lease.failure).toEqual(expect.any(String));
  });

  it('I12: is counted from before its renewal was sent, whatever the answer took', async () => {
    const { clock, store, lease } = leaseOver();
    await lease.start();
    const gate = store.hold('heartbeat', { after: true });
    await clock.advance(LEASE_MS / 3);
    await gate.reached;
    await clock.advance(LEASE_MS / 6);
    gate.open();
    await rest();
    await clock.advance(0);
    // Sent at a third: it lasts until four thirds, less a twentieth.
    clock.jump((LEASE_MS * 4) / 3 - LEASE_MS / 20 - LEASE_MS / 2 - 1);
    expect(lease.isHeld()).toBe(true);
    clock.jump(1);
    expect(lease.isHeld()).toBe(false);
  });

  it('I12: a late answer of an earlier renewal does not shorten what a later one has given', async () => {
    const { clock, store, lease } = leaseOver();
    await lease.start();
    const gate = store.hold('heartbeat', { after: true });
    await clock.advance(LEASE_MS / 3);
    await gate.reached;
    await clock.advance(LEASE_MS / 3);
    const beats = store.count('heartbeat');
    expect(beats).toBeGreaterThan(2);
    gate.open();
    await rest();
    clock.jump(LEASE_MS - LEASE_MS / 20 - 1);
    expect(lease.isHeld()).toBe(true);
  });

  it('STO-4: an answer that is no passing trouble stops the worker', async () => {
    const { store, lease, told } = leaseOver();
    store.fail('heartbeat', { error: () => new BrokenStoreError('a row count that cannot be') });
    await lease.start();
    expect(told).toEqual(['broken: a row count that cannot be']);
  });

  it.each([-3_600_000, -8_000, 3_600_000])(
    'OWN-3: ends when it ends, though the wall clock is set by %d ms meanwhile',
    async (byMs) => {
      const { clock, store, lease, told } = leaseOver();
      await lease.start();
      store.fail('heartbeat', { times: Number.POSITIVE_INFINITY });
      await clock.advance(LEASE_MS / 2);
      clock.set(byMs);
      expect(lease.isHeld()).toBe(true);
      await clock.advance(LEASE_MS / 3 - 1);
      expect(told).toEqual([]);
      await clock.advance(1);
      expect(told).toEqual(['lost']);
      expect(lease.isHeld()).toBe(false);
    },
  );

  it('OWN-3: a machine that was suspended begins nothing before its lease is renewed', async () => {
    const { clock, store, lease, told } = leaseOver();
    await lease.start();
    clock.jump(LEASE_MS);
    expect(lease.isHeld()).toBe(false);
    lease.confirm();
    await rest();
    expect(store.count('heartbeat')).toBe(2);
    expect(lease.isHeld()).toBe(true);
    await clock.advance(LEASE_MS);
    expect(told).toEqual([]);
  });

  it('OWN-3: a machine that was suspended and cannot renew its lease lets go, however often it is asked', async () => {
    const { clock, store, lease, told } = leaseOver();
    await lease.start();
    store.fail('heartbeat', { times: Number.POSITIVE_INFINITY });
    clock.suspend(LEASE_MS);
    for (let passedMs = 0; passedMs < LEASE_MS / 6; passedMs += 100) {
      lease.confirm();
      await clock.advance(100);
    }
    expect(told).toEqual(['lost']);
    expect(lease.isHeld()).toBe(false);
  });

  it('leaves no timer behind when it is stopped, not even for a renewal that is under way', async () => {
    const { clock, store, lease } = leaseOver();
    await lease.start();
    const gate = store.hold('heartbeat', { after: true });
    await clock.advance(LEASE_MS / 3);
    await gate.reached;
    lease.stop();
    gate.open();
    await rest();
    expect(clock.pending).toBe(0);
    expect(lease.isHeld()).toBe(true);
  });
});
