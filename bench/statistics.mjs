export function median(values) {
  return quantile(values, 0.5);
}

export function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)];
  return below + (sorted[Math.ceil(place)] - below) * (place % 1);
}

/** The median, and between what the middle half of the values lies. */
export function spreadOf(values) {
  return { median: median(values), from: quantile(values, 0.25), to: quantile(values, 0.75) };
}
