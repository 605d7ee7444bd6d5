import type { Interaction } from '../../lib/contracts/interaction.js';
import type { JournalEntry } from '../../lib/contracts/journal-entry.js';
import type {
  AppendRequest,
  CreateRequest,
  CreateResult,
  DueAnswer,
  DueQuery,
  InteractionQuery,
  JournalPosition,
  ListQuery,
  Page,
  StoreMetrics,
  TransitionDecision,
  TransitionRequest,
  TransitionResult,
} from '../../lib/contracts/ports/run-store.port.js';
import type { RunRecord, RunSummary } from '../../lib/contracts/run.js';
import { AgentRunsError } from '../../lib/errors/agent-runs.error.js';
import { MemoryRunStore } from '../../lib/stores/memory/memory-run.store.js';

/** A store with one fault, and the requirement whose cases must notice it. */
export interface BrokenStore {
  fault: string;
  id: string;
  make: () => MemoryRunStore;
}

type Loaded = Awaited<ReturnType<MemoryRunStore['load']>>;
type Read = Awaited<ReturnType<MemoryRunStore['readJournal']>>;

const broken = (fault: string, id: string, store: new () => MemoryRunStore): BrokenStore => ({
  fault,
  id,
  make: () => new store(),
});

const tick = () => new Promise((resolve) => setImmediate(resolve));

/** Decides on what it saw, and writes a moment later without looking again. */
abstract class DecidesUnlocked extends MemoryRunStore {
  protected abstract writeLater<T>(request: TransitionRequest<T>, decision: TransitionDecision<T>): Promise<void>;

  override async transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>> {
    let decision: TransitionDecision<T> | undefined;
    const seen = await super.transition({
      ...request,
      decide: (locked) => {
        decision = request.decide(locked);
        return { result: decision.result };
      },
    });
    if (seen.outcome !== 'done' || !decision) return seen;
    await this.writeLater(request, decision);
    const run = (await this.load(request.runId))?.run as RunRecord;
    return { outcome: 'done', result: decision.result, run };
  }

  protected put<T>(request: TransitionRequest<T>, decision: Omit<TransitionDecision<unknown>, 'result'>) {
    return super.transition({ ...request, decide: () => ({ result: null, ...decision }) });
  }
}

class RewritesEntries extends MemoryRunStore {
  constructor(private readonly rewrite: (text: string) => string) {
    super();
  }

  override append(request: AppendRequest): Promise<void> {
    const entries = JSON.parse(this.rewrite(JSON.stringify(request.entries))) as JournalEntry[];
    return super.append({ ...request, entries });
  }
}

export const brokenStores: readonly BrokenStore[] = [
  broken(
    'lets any attempt append',
    'OWN-2',
    class extends MemoryRunStore {
      override async append(request: AppendRequest) {
        const attempt = this.tables.runs.get(request.runId)?.attempt ?? 0;
        return super.append({ ...request, attempt });
      }
    },
  ),
  broken(
    'lets an attempt append when its run is not running any more',
    'OWN-2',
    class extends MemoryRunStore {
      override append(request: AppendRequest) {
        return super.append(request).catch(async (error: unknown) => {
          if (this.tables.runs.get(request.runId)?.attempt !== request.attempt) throw error;
          await this.transition({
            runId: request.runId,
            decide: () => ({ result: null, run: { change: {}, entries: request.entries } }),
          });
        });
      }
    },
  ),
  broken(
    'numbers entries itself, whatever the caller says',
    'STO-1',
    class extends MemoryRunStore {
      override append(request: AppendRequest) {
        const sequence = this.tables.runs.get(request.runId)?.sequence ?? 0;
        return super.append({ ...request, firstSequence: sequence + 1 });
      }
    },
  ),
  broken(
    'takes a repeated batch for a conflict',
    'STO-1',
    class extends MemoryRunStore {
      override append(request: AppendRequest) {
        return super.append({ ...request, entries: [...request.entries, ...this.extra()] });
      }
      private turn = 0;
      private extra(): JournalEntry[] {
        this.turn += 1;
        return [{ type: 'run.handed_over', at: this.turn, attempt: this.turn }];
      }
    },
  ),
  broken(
    'reads a journal newest first',
    'EVT-1',
    class extends MemoryRunStore {
      override async readJournal(runId: string, after: number, limit: number): Promise<Read> {
        const read = await super.readJournal(runId, after, limit);
        return read && { ...read, entries: read.entries.reverse() };
      }
    },
  ),
  broken(
    'takes the cursor of a journal as the first entry wanted',
    'EVT-1',
    class extends MemoryRunStore {
      override readJournal(runId: string, after: number, limit: number): Promise<Read> {
        return super.readJournal(runId, after - 1, limit);
      }
    },
  ),
  broken(
    'follows journals from a position again',
    'STR-S3',
    class extends MemoryRunStore {
      override follow(positions: readonly JournalPosition[], limit: number) {
        return super.follow(
          positions.map(({ runId, after }) => ({ runId, after: after - 1 })),
          limit,
        );
      }
    },
  ),
  broken(
    'takes a read that its limit cut for a whole one',
    'STR-S3',
    class extends MemoryRunStore {
      override async follow(positions: readonly JournalPosition[], limit: number) {
        return (await super.follow(positions, limit)).map((news) => ({ ...news, isComplete: true }));
      }
    },
  ),
  broken(
    'shows the run of another moment with a journal',
    'EVT-1',
    class extends MemoryRunStore {
      override async readJournal(runId: string, after: number, limit: number): Promise<Read> {
        const read = await super.readJournal(runId, after, limit);
        for (let n = 0; n < 5; n += 1) await tick();
        return read && { ...read, run: (await this.load(runId))?.run as RunRecord };
      }
    },
  ),
  broken(
    'gives out the very objects it keeps',
    'STO-2',
    class extends MemoryRunStore {
      override load(runId: string): Promise<Loaded> {
        const run = this.tables.runs.get(runId);
        return Promise.resolve(run ? { run, lease: null } : null);
      }
    },
  ),
  broken(
    'keeps the very objects it is given',
    'STO-2',
    class extends MemoryRunStore {
      override create(request: CreateRequest): Promise<CreateResult> {
        let given: RunRecord | undefined;
        const created = super.create({
          ...request,
          decide: (situation) => {
            const decision = request.decide(situation);
            if (decision.do === 'insert') given = decision.run;
            return decision;
          },
        });
        const run = this.tables.runs.get(request.runId);
        if (given && run) this.tables.runs.set(run.id, { ...run, metadata: given.metadata });
        return created;
      }
    },
  ),
  broken(
    'writes the parts of a decision one by one',
    'STO-1',
    class extends DecidesUnlocked {
      protected async writeLater<T>(
        request: TransitionRequest<T>,
        { run, interactions, ...rest }: TransitionDecision<T>,
      ) {
        if (run) await this.put(request, { run });
        await this.put(request, { ...rest, ...(interactions ? { interactions } : {}) });
      }
    },
  ),
  ...(['OWN-1', 'RUN-1', 'PPL-3', 'SUB-4', 'OWN-4'] as const).map((id) =>
    broken(
      `decides without a lock (seen by ${id})`,
      id,
      class extends DecidesUnlocked {
        protected async writeLater<T>(
          request: TransitionRequest<T>,
          { result: _, ...decision }: TransitionDecision<T>,
        ) {
          await tick();
          await this.put(request, decision);
        }
      },
    ),
  ),
  broken(
    'writes before a decider may still refuse',
    'STO-1',
    class extends MemoryRunStore {
      override transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>> {
        const run = this.tables.runs.get(request.runId);
        if (run) this.tables.runs.set(run.id, { ...run, revision: run.revision + 1 });
        return super.transition(request);
      }
    },
  ),
  broken(
    'forgets requests',
    'SUB-2',
    class extends MemoryRunStore {
      override create(request: CreateRequest): Promise<CreateResult> {
        return super.create({
          ...request,
          decide: (situation) => {
            const decision = request.decide({ ...situation, sameRequest: null });
            if (decision.do !== 'insert') return decision;
            return { ...decision, run: { ...decision.run, requestScope: `${request.requestScope}/${request.runId}` } };
          },
        });
      }
    },
  ),
  broken(
    'folds the case of ids',
    'STO-5',
    class extends MemoryRunStore {
      override create(request: CreateRequest): Promise<CreateResult> {
        const fold = (run: RunRecord) => ({ ...run, requestId: run.requestId.toLowerCase() });
        return super.create({
          ...request,
          requestId: request.requestId.toLowerCase(),
          decide: (situation) => {
            const decision = request.decide(situation);
            return decision.do === 'insert' ? { ...decision, run: fold(decision.run) } : decision;
          },
        });
      }
    },
  ),
  broken(
    'forgets the row of a session',
    'SUB-4',
    class extends MemoryRunStore {
      override create(request: CreateRequest): Promise<CreateResult> {
        return super.create({ ...request, decide: (situation) => request.decide({ ...situation, session: null }) });
      }
    },
  ),
  broken(
    'lets a settled run be settled again',
    'STO-1',
    class extends MemoryRunStore {
      override transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>> {
        return super.transition(request).catch(async (error: unknown) => {
          if (!AgentRunsError.is(error, 'ILLEGAL_TRANSITION')) throw error;
          const { run } = (await this.load(request.runId)) as NonNullable<Loaded>;
          return { outcome: 'done' as const, result: undefined as T, run };
        });
      }
    },
  ),
  broken(
    'lets a decision be taken twice',
    'PPL-4',
    class extends MemoryRunStore {
      override transition<T>(request: TransitionRequest<T>): Promise<TransitionResult<T>> {
        return super.transition({
          ...request,
          decide: (locked) => {
            const decision = request.decide(locked);
            for (const one of decision.interactions ?? []) this.tables.interactions.delete(one.id);
            return decision;
          },
        });
      }
    },
  ),
  broken(
    'lists asks of one moment by their ids',
    'PPL-9',
    class extends MemoryRunStore {
      override async interactions(query: InteractionQuery): Promise<Page<Interaction>> {
        const page = await super.interactions(query);
        const items = page.items.sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1));
        return { ...page, items };
      }
    },
  ),
  broken(
    'offers runs whose owner is alive',
    'OWN-4',
    class extends MemoryRunStore {
      override async due(query: DueQuery): Promise<DueAnswer> {
        const workers = [...this.tables.workers];
        this.tables.workers.clear();
        const answer = super.due(query);
        for (const [id, worker] of workers) this.tables.workers.set(id, worker);
        return answer;
      }
    },
  ),
  broken(
    'offers runs that the worker cannot execute',
    'OWN-6',
    class extends MemoryRunStore {
      override due(query: DueQuery): Promise<DueAnswer> {
        const offers = query.offers.map((offer) => ({ ...offer, hash: null }));
        return super.due({ ...query, offers });
      }
    },
  ),
  broken(
    'shows content in lists',
    'STO-8',
    class extends MemoryRunStore {
      override async list(query: ListQuery): Promise<Page<RunSummary>> {
        const page = await super.list(query);
        return { ...page, items: page.items.map(({ id }) => this.tables.runs.get(id) as RunSummary) };
      }
    },
  ),
  broken(
    'pages by offset',
    'STO-8',
    class extends MemoryRunStore {
      override async list({ cursor, limit, ...query }: ListQuery): Promise<Page<RunSummary>> {
        const from = Number(cursor ?? 0);
        const { items } = await super.list({ ...query, limit: 1_000 });
        const page = { items: items.slice(from, from + limit) };
        return from + limit < items.length ? { ...page, nextCursor: String(from + limit) } : page;
      }
    },
  ),
  broken(
    'ignores the type of a summary filter it does not know',
    'STO-8',
    class extends MemoryRunStore {
      override list({ metadata: _, ...query }: ListQuery): Promise<Page<RunSummary>> {
        return super.list(query);
      }
    },
  ),
  broken(
    'takes actors that differ by case for one',
    'STO-8',
    class extends MemoryRunStore {
      override async list({ actorId, ...query }: ListQuery): Promise<Page<RunSummary>> {
        const page = await super.list(query);
        const isTheirs = ({ actor }: RunSummary) => actor?.id.toLowerCase() === actorId?.toLowerCase();
        return actorId === undefined ? page : { ...page, items: page.items.filter(isTheirs) };
      }
    },
  ),
  broken(
    'lists what was created at the very end of a range',
    'STO-8',
    class extends MemoryRunStore {
      override list({ createdBefore, ...query }: ListQuery): Promise<Page<RunSummary>> {
        return super.list({ ...query, ...(createdBefore !== undefined && { createdBefore: createdBefore + 1 }) });
      }
    },
  ),
  broken(
    'cuts texts at NUL',
    'JRN-9',
    class extends RewritesEntries {
      constructor() {
        super((text) => text.replaceAll('\\u0000', ''));
      }
    },
  ),
  broken(
    'stores texts as UTF-8 without escaping lone surrogates',
    'JRN-9',
    class extends RewritesEntries {
      constructor() {
        super((text) => text.replaceAll(/\\ud[89a-f][0-9a-f]{2}/g, '\ufffd'));
      }
    },
  ),
  broken(
    'loses __proto__ keys',
    'JRN-9',
    class extends RewritesEntries {
      constructor() {
        super((text) => text.replaceAll('"__proto__"', '"proto"'));
      }
    },
  ),
  broken(
    'parses what it reads once too often',
    'STO-2',
    class extends MemoryRunStore {
      override async load(runId: string): Promise<Loaded> {
        const found = await super.load(runId);
        if (typeof found?.run.output !== 'string') return found;
        try {
          return { ...found, run: { ...found.run, output: JSON.parse(found.run.output) as RunRecord['output'] } };
        } catch {
          return found;
        }
      }
    },
  ),
  broken(
    'counts nothing',
    'OPS-2',
    class extends MemoryRunStore {
      override async metrics(): Promise<StoreMetrics> {
        return { ...(await super.metrics()), operations: 0 };
      }
    },
  ),
];
