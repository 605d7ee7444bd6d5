import { afterEach, describe, expect, it } from '@jest/globals';
import { scriptedModel } from '../../lib/model/scripted/scripted-model.js';
import { agent, engineOver, stopEngines } from '../support/engine-harness.js';
import { ENGINE_STORES } from '../support/stores.js';

afterEach(stopEngines);

describe.each(ENGINE_STORES)('a prompt with media on $name', ({ open }) => {
  it('SUB-8: reaches the model of a later process byte for byte', async () => {
    const shared = await open();
    const bytes = Uint8Array.from({ length: 70_001 }, (_, index) => (index * 31) % 256);
    const messages = [
      {
        role: 'user' as const,
        content: [
          { type: 'text' as const, text: 'What is this? 🔑' },
          { type: 'image' as const, image: bytes, mediaType: 'image/png' },
          { type: 'file' as const, data: bytes.subarray(1, 3), mediaType: 'application/pdf', filename: 'a.pdf' },
          { type: 'image' as const, image: 'https://pictures.example/a.png' },
        ],
      },
    ];
    const first = await engineOver(shared.store, agent(scriptedModel()), { worker: false });
    const { id } = await first.runs.start({ agent: 'support', messages });
    await first.stop();

    const model = scriptedModel([{ text: 'a picture' }]);
    const second = await engineOver(await shared.reopen(), agent(model));
    expect(await second.runs.result(id)).toMatchObject({ status: 'completed' });
    const [, image, file, linked] = (model.requests[0]?.messages[0]?.content ?? []) as {
      data?: string;
      url?: string;
    }[];
    expect(Buffer.from(image?.data ?? '', 'base64').equals(Buffer.from(bytes))).toBe(true);
    expect(Buffer.from(file?.data ?? '', 'base64').equals(Buffer.from([31, 62]))).toBe(true);
    expect(file).toMatchObject({ mediaType: 'application/pdf', filename: 'a.pdf' });
    expect(linked).toMatchObject({ url: 'https://pictures.example/a.png' });
    await stopEngines();
    await shared.dispose();
  });
});
