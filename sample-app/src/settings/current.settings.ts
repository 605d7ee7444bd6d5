import { readSettings } from './settings.js';

/** The settings of this process: what a module is made of must be known before modules are. */
export const settings = readSettings(process.env);
