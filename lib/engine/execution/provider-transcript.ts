import type { AssistantPart, Message, ToolCallPart, ToolResultPart } from '../../contracts/message.js';
import type { Digester } from '../../contracts/ports/system.port.js';

/** Whom a request goes to. */
interface TranscriptTarget {
  /** The provider that made a call, as its part says. */
  provider: string;
  toolNames: ReadonlySet<string>;
}

/**
 * A transcript as a provider accepts it. The ids of its own calls go back unchanged, unless an earlier call has the
 * same one; ids that others made become nine letters and digits, which every provider accepts. A tool name that a model
 * invented, and that strict providers would refuse for good, becomes a safe one. What approvers changed is told with
 * the result. The journal keeps what was said; equal transcripts give equal requests, so that prefix caches hold.
 */
export function transcriptFor(
  messages: readonly Message[],
  target: TranscriptTarget,
  digester: Digester,
): readonly Message[] {
  const taken = new Set<string>();
  /** Of the calls that the next tool message answers, in their order. */
  let callIds: string[] = [];
  return messages.map((message, index): Message => {
    if (message.role === 'assistant') {
      callIds = [];
      const content = mapped(message.content, (part): AssistantPart => {
        if (part.type !== 'tool-call') return part;
        const isOwn = part.provider === target.provider && !taken.has(part.callId);
        const callId = isOwn ? part.callId : substituteCallId(digester, `${message.id ?? index}/${part.callId}`, taken);
        taken.add(callId);
        callIds.push(callId);
        return renamed(part, callId, target);
      });
      return content === message.content ? message : { ...message, content };
    }
    if (message.role !== 'tool') return message;
    const content = mapped(message.content, (part, place) =>
      withEdits(renamed(part, callIds[place] ?? part.callId, target)),
    );
    return content === message.content ? message : { ...message, content };
  });
}

/** Nine letters and digits derived from a seed: the form that the strictest provider (Mistral) demands. */
export function substituteCallId(digester: Digester, seed: string, taken: ReadonlySet<string>): string {
  for (let round = 0; ; round++) {
    const id = digester.digest(round === 0 ? seed : `${seed}#${round}`).slice(0, 9);
    if (!taken.has(id)) return id;
  }
}

/** Whether a provider named its call at all. Some write the absence of an id as a word. */
export function isCallId(id: string): boolean {
  return id.isWellFormed() && !/^\s*(?:null|none|undefined)?\s*$/i.test(id);
}

/** The same list when nothing changed: most transcripts go out as they are. */
function mapped<P>(parts: P[], change: (part: P, index: number) => P): P[] {
  const changed = parts.map(change);
  return changed.every((part, index) => part === parts[index]) ? parts : changed;
}

function renamed<P extends Pick<ToolCallPart, 'callId' | 'name'>>(
  part: P,
  callId: string,
  target: TranscriptTarget,
): P {
  const name = safeToolName(part.name, target.toolNames);
  return callId === part.callId && name === part.name ? part : { ...part, callId, name };
}

/** The call above it shows what the model asked for; what was done instead is said with the result. */
function withEdits(part: ToolResultPart): ToolResultPart {
  if (!part.edits) return part;
  const notice = part.edits
    .map(({ by, note, arguments: edited }) => {
      const why = note === undefined ? '' : ` (${note})`;
      return `Approved by ${by} with changed arguments${why}: ${JSON.stringify(edited)}.`;
    })
    .join(' ');
  if (part.outcome === 'success') return { ...part, output: { notice, result: part.output } };
  return {
    ...part,
    output: `${notice} ${typeof part.output === 'string' ? part.output : JSON.stringify(part.output)}`,
  };
}

/** `^[A-Za-z][A-Za-z0-9_-]{0,63}$`, and never the name of a tool that was not meant. */
function safeToolName(name: string, known: ReadonlySet<string>): string {
  if (known.has(name) || /^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(name)) return name;
  const cleaned = name.slice(0, 64).replace(/[^A-Za-z0-9_-]/g, '_');
  const safe = /^[A-Za-z]/.test(cleaned) ? cleaned : `tool_${cleaned}`.slice(0, 64);
  let free = safe;
  for (let n = 2; known.has(free); n++) free = `${safe.slice(0, 56)}_${n}`;
  return free;
}
