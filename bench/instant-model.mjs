// A model that costs nothing: it asks for one tool as often as the prompt says, then answers.
const USAGE = { inputTokens: 100, outputTokens: 20, totalTokens: 120 };

/** @param tool `look` needs nobody, `pay` an approval */
export function promptOf({ turns, bytes = 200, tool = 'look' }) {
  return `${turns} turns of ${tool} with ${bytes} bytes`;
}

export class InstantModel {
  name = 'bench:instant';
  /** Called at the start of every request. */
  onRequest = () => undefined;

  async generate({ messages }) {
    this.onRequest(messages);
    const [, turns, tool, bytes] = /^(\d+) turns of (\w+) with (\d+) bytes$/.exec(messages[0].content[0].text);
    // The prompt, then a reply and a result for each turn.
    const turn = (messages.length + 1) / 2;
    if (turn > Number(turns)) {
      return { content: [{ type: 'text', text: 'All is done.' }], finishReason: 'stop', usage: USAGE };
    }
    const argumentsText = JSON.stringify({ turn, bytes: Number(bytes) });
    return {
      content: [{ type: 'tool-call', callId: `call_${turn}`, name: tool, argumentsText }],
      finishReason: 'tool-calls',
      usage: USAGE,
    };
  }
}
