// Where models and tools wait until the parent lets them go on. A gate that was opened before anybody came is open.
export class Gates {
  #gates = new Map();

  open(name) {
    this.#gate(name).open();
  }

  passed(name) {
    return this.#gate(name).passed;
  }

  #gate(name) {
    let gate = this.#gates.get(name);
    if (!gate) {
      gate = {};
      gate.passed = new Promise((resolve) => (gate.open = resolve));
      this.#gates.set(name, gate);
    }
    return gate;
  }
}

/** A model that answers a step of the prompt's script with `"gate": "name"` only when that gate is open. */
export function gated(model, gates, note) {
  return {
    name: model.name,
    async generate(request) {
      const name = gateOf(request.messages);
      if (name !== undefined) {
        note({ tool: 'model', operationId: `${name}/` });
        await gates.passed(name);
      }
      return model.generate(request);
    },
  };
}

function gateOf(messages) {
  const at = messages.findLastIndex(({ role, content }) => role === 'user' && content[0]?.text?.startsWith('@@'));
  if (at < 0) return undefined;
  const steps = JSON.parse(messages[at].content[0].text.slice(2));
  return steps[messages.slice(at).filter(({ role }) => role === 'assistant').length]?.gate;
}
