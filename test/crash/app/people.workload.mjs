// A run that people take part in: an approval and a question asked in the same turn, the question from the middle of a method with a journaled step; a
// budget that stops the run before its tools; a message that arrives while it waits and one that arrives during its last model call; an approval asked for
// by a method itself.
import { Agent } from 'nestjs-agent-runs';
import { declareTool } from './declare-tool.mjs';
import { resolveByLookingItUp } from './operator.mjs';

const call = (name) => ({ name, args: { order: 'o-1' } });

const SCRIPT = [
  { calls: [call('refund'), call('survey'), call('look_up')] },
  { calls: [call('ship'), call('close')] },
  { text: 'nearly done' },
  { text: 'all done' },
];

export function people({ world, told }) {
  class Tools {
    refund(input, context) {
      world.entered('refund', context);
      return world.effect('refund', context, input);
    }

    async survey(input, context) {
      world.entered('survey', context);
      const offer = await context.step('offer', () => {
        world.note({ fact: 'step', operationId: context.operationId, step: 'offer' });
        return { cents: 1200 };
      });
      const { mood } = await context.ask({ id: 'mood', text: `Is ${offer.cents} fine?`, choices: ['fine', 'bad'] });
      return { ...world.effect('survey', context, input), mood, ...offer };
    }

    async look_up(input, context) {
      world.entered('look_up', context);
      await told.after('tool.waiting', `${context.runId}/r1.m1.t1`);
      return world.effect('look_up', context, input);
    }

    async ship(input, context) {
      world.entered('ship', context);
      await told.after('tool.waiting', `${context.runId}/r1.m2.t1`);
      return world.effect('ship', context, input);
    }

    async close(input, context) {
      world.entered('close', context);
      const { by } = await context.requestApproval({ reason: 'It cannot be opened again.', arguments: input });
      return { ...world.effect('close', context, input), by };
    }
  }
  declareTool(Tools, 'refund', 'manual', { approval: true });
  declareTool(Tools, 'survey', 'idempotent');
  declareTool(Tools, 'look_up', 'safe');
  declareTool(Tools, 'ship', 'inform');
  declareTool(Tools, 'close', 'manual');

  class Desk {}
  Agent({ name: 'desk', version: '1', instructions: 'Do as the script says.', tools: [Tools] })(Desk);

  return {
    agent: 'desk',
    providers: [Tools, Desk],
    prompt: `@@${JSON.stringify(SCRIPT)}`,
    budget: { maxTotalTokens: 20 },
    /** Somebody speaks up while the model gives what would have been its last answer. */
    async duringModelCall(index, runId, runs) {
      if (index === 2) await runs.steer(runId, 'One more thing.', { requestId: 'steer-2', sender: 'ann' });
    },
    async goOn(run, runs) {
      if (run.status === 'needs_attention') return resolveByLookingItUp(run, runs, world);
      const [asked] = run.interactions;
      if (asked) return runs.respond(run.id, asked.id, ANSWERS[asked.kind]);
      if (!run.waitingFor?.includes('budget')) return undefined;
      await runs.steer(run.id, 'Hurry up.', { requestId: 'steer-1', sender: 'ann' });
      await runs.grantBudget(run.id, 100, { by: 'bob' });
    },
  };
}

const ANSWERS = {
  approval: { decision: 'approve', by: 'bob' },
  question: { action: 'accept', by: 'ann', answers: { mood: 'fine' } },
};
