// The package, for import.
import rushlight from './index.js';

export const {
  Adapter,
  Code,
  Grammar,
  LanguageModel,
  Module,
  RushlightError,
  Session,
  Tensor,
  version,
} = rushlight;
export default rushlight;
