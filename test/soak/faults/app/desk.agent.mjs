// One agent with a tool of each recovery policy. The script of a run stands in its prompt, and the run's id in the line below it. A text from the far side is what
// the model says instead.
import { Agent, didNotHappen, happened } from 'nestjs-agent-runs';
import { scriptedModel } from 'nestjs-agent-runs/testing';
import { declareProbe, declareTool } from '../../../crash/app/declare-tool.mjs';
import { Note } from '../../../crash/app/note.mjs';

/**
 * @param options of `@Agent`
 * @param hasNotes whether it has its transactional tool, which needs a connection more than others do
 */
export function deskAgent(farSide, options, hasNotes) {
  const script = scriptedModel([], { place: 'prompt', strict: ['results', 'ids'] });
  const model = {
    name: script.name,
    async generate(request) {
      const index = request.messages.filter(({ role }) => role === 'assistant').length;
      const answer = await farSide.ask({ tool: 'model', runId: runIdIn(request.messages), key: `m${index + 1}` });
      const reply = await script.generate(request);
      return typeof answer === 'string' ? { ...reply, content: [{ type: 'text', text: answer }] } : reply;
    },
  };

  const ask = async (tool, { order }, { runId, operationId, attempt, signal }) => {
    const key = operationId.slice(runId.length + 1);
    signal.addEventListener('abort', () => farSide.letGo({ tool, runId, key }));
    const answer = await farSide.ask({ tool, runId, key, attempt, order });
    if (typeof answer?.spinMs === 'number') spin(answer.spinMs);
    return answer;
  };

  class Tools {
    look_up(input, context) {
      return ask('look_up', input, context);
    }

    refund(input, context) {
      return ask('refund', input, context);
    }

    pay(input, context) {
      return ask('pay', input, context);
    }

    charge(input, context) {
      return ask('charge', input, context);
    }

    async findCharge({ runId, operationId }) {
      const found = await farSide.ask({ tool: 'find_charge', runId, key: operationId.slice(runId.length + 1) });
      return found === null ? didNotHappen() : happened(found);
    }

    async note(input, context) {
      const answer = await ask('note', input, context);
      await context.manager.insert(Note, { operationId: context.operationId, text: `for ${input.order}` });
      return answer;
    }

    sign(input, context) {
      return ask('sign', input, context);
    }
  }
  declareTool(Tools, 'look_up', 'safe');
  declareTool(Tools, 'refund', 'idempotent');
  declareTool(Tools, 'pay', 'manual');
  declareTool(Tools, 'charge', 'probe');
  declareProbe(Tools, 'findCharge', 'charge');
  if (hasNotes) declareTool(Tools, 'note', 'transactional');
  declareTool(Tools, 'sign', 'manual', {
    approval: ({ order }) => ({ reason: 'It binds us.', expiresIn: /^\d+s$/.test(order) ? order : '1h' }),
  });

  class Desk {}
  Agent({ name: 'desk', version: '1', instructions: 'Do as the script says.', tools: [Tools], ...options })(Desk);
  return { model, providers: [Tools, Desk] };
}

/** Computes something, and lets nobody else do anything meanwhile. */
function spin(ms) {
  for (const end = performance.now() + ms; performance.now() < end;);
}

function runIdIn(messages) {
  const { content } = messages.find(({ role }) => role === 'user');
  return content[0].text.split('\n')[1];
}
