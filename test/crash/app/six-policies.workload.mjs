// Three turns: calls of three policies in parallel that end one after the other, against the order they were asked for in; calls of three more that end
// together, followed by a transactional one; the answer.
import { Agent, didNotHappen, happened, outcomeUnknown } from 'nestjs-agent-runs';
import { Note } from './note.mjs';
import { declareProbe, declareTool } from './declare-tool.mjs';
import { resolveByLookingItUp } from './operator.mjs';

const call = (name) => ({ name, args: { order: 'o-1' } });

const SCRIPT = [
  { calls: [call('look_up'), call('refund'), call('mail')] },
  { calls: [call('charge'), call('fax'), call('ship'), call('note')] },
  { text: 'all done' },
];

export function sixPolicies({ world, told }) {
  class Tools {
    async look_up(input, context) {
      world.entered('look_up', context);
      const found = world.effect('look_up', context, input);
      await told.after('tool.completed', `${context.runId}/r1.m1.t1`);
      return found;
    }

    async refund(input, context) {
      world.entered('refund', context);
      await told.after('tool.completed', `${context.runId}/r1.m1.t2`);
      return world.effect('refund', context, input);
    }

    mail(input, context) {
      world.entered('mail', context);
      return world.effect('mail', context, input);
    }

    charge(input, context) {
      world.entered('charge', context);
      return world.effect('charge', context, input);
    }

    /** The far side can be asked. */
    findCharge({ operationId }) {
      world.note({ fact: 'probed', tool: 'charge', operationId });
      const receipt = world.find('charge', operationId);
      return receipt === null ? didNotHappen() : happened(receipt);
    }

    fax(input, context) {
      world.entered('fax', context);
      return world.effect('fax', context, input);
    }

    /** The far side never knows. */
    findFax({ operationId }) {
      world.note({ fact: 'probed', tool: 'fax', operationId });
      return outcomeUnknown();
    }

    ship(input, context) {
      world.entered('ship', context);
      return world.effect('ship', context, input);
    }

    async note({ order }, context) {
      world.entered('note', context);
      await context.manager.insert(Note, { operationId: context.operationId, text: `for ${order}` });
      return { noted: order };
    }
  }
  declareTool(Tools, 'look_up', 'safe');
  declareTool(Tools, 'refund', 'idempotent');
  declareTool(Tools, 'mail', 'manual');
  declareTool(Tools, 'charge', 'probe');
  declareProbe(Tools, 'findCharge', 'charge');
  declareTool(Tools, 'fax', 'probe');
  declareProbe(Tools, 'findFax', 'fax');
  declareTool(Tools, 'ship', 'inform');
  declareTool(Tools, 'note', 'transactional');

  class Desk {}
  Agent({ name: 'desk', version: '1', instructions: 'Do as the script says.', tools: [Tools] })(Desk);

  return {
    agent: 'desk',
    providers: [Tools, Desk],
    prompt: `@@${JSON.stringify(SCRIPT)}`,
    async goOn(run, runs) {
      if (run.status === 'needs_attention') await resolveByLookingItUp(run, runs, world);
    },
  };
}
