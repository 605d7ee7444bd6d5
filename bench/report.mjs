// The table that a reader sees.
export function tableOf(name, facts, figures) {
  const rows = [
    ['figure', 'measured', 'goal', ''],
    ...figures.map((figure) => [figure.label, figure.measured, figure.goal, figure.verdict]),
  ];
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) =>
    row
      .map((cell, column) => pad(cell, widths[column], column === 1))
      .join('  ')
      .trimEnd();
  return [
    '',
    `${name} — ${Object.entries(facts)
      .map(([key, value]) => (key === 'pool' ? `pool of ${value}` : value))
      .join('; ')}`,
    line(rows[0]),
    widths.map((width) => '-'.repeat(width)).join('  '),
    ...rows.slice(1).map(line),
  ].join('\n');
}

export function machineLine({ cores, cpu, memoryGb, node, platform, load }) {
  return `${cores} cores (${cpu}), ${memoryGb} GB, Node ${node}, ${platform}; load ${load} when it began`;
}

/** @param results by database */
export function verdictLine(results) {
  const judged = results.flatMap(({ name, figures }) =>
    figures.filter(({ verdict }) => verdict !== '').map((figure) => ({ name, ...figure })),
  );
  const missed = judged.filter(({ verdict }) => verdict === 'missed');
  const summary = `${judged.length - missed.length} of ${judged.length} goals met or reached`;
  return [
    `${summary}${missed.length === 0 ? '.' : '; missed:'}`,
    ...missed.map(({ name, label, measured, goal }) => `  ${name}: ${label} is ${measured}, goal ${goal}`),
  ].join('\n');
}

function pad(text, width, right) {
  return right ? text.padStart(width) : text.padEnd(width);
}
