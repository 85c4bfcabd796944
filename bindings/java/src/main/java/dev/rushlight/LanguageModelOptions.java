package dev.rushlight;

import java.nio.file.Path;
import java.util.List;

/** How a {@link LanguageModel} is opened; what is not set is the default. */
public final class LanguageModelOptions {
  /** What keys and values are stored in. */
  public enum Cache {
    AUTOMATIC,
    FLOAT32,
    FLOAT16,
    INT8
  }

  /** For kernels; 0: one for each core. */
  public int threads;

  /** Bytes, without the cache; 0: none. */
  public long memoryLimit;

  /** The .ptd that belongs to the program, or null. */
  public Path dataPath;

  /** Shared libraries with kernels of operators of your own. */
  public List<Path> kernelLibraries = List.of();

  /** Shared libraries with backends. */
  public List<Path> backendLibraries = List.of();

  public boolean readsFile;
  public boolean guardsFile;
  public Cache cache = Cache.AUTOMATIC;

  /** Texts that are computed at once; 0: 32. */
  public int maxTexts;

  /** Bytes of keys and values; 0: four texts as long as the context. */
  public long cacheLimit;

  /** Rows of prompts in a step that also decodes; 0: 128. */
  public long prefillRows;

  /** In place of the program's; null: the program's. */
  public String chatTemplate;

  long[] numbers() {
    return new long[] {
      threads,
      memoryLimit,
      readsFile ? 1 : 0,
      guardsFile ? 1 : 0,
      cache.ordinal(),
      maxTexts,
      cacheLimit,
      prefillRows,
    };
  }
}
