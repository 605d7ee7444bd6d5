/** Optional peers are loaded when the first tool needs them, never at import. */
import { InvalidConfigurationError } from '../../errors/configuration.errors.js';

/**
 * @param load the import itself, so that bundlers and both module formats see a literal specifier
 * @throws InvalidConfigurationError naming what to install
 */
export async function loadOptional<T>(name: string, usedFor: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    throw new InvalidConfigurationError(
      [`${usedFor} needs the package "${name}", which could not be loaded. Run: npm install ${name}`],
      cause,
    );
  }
}
