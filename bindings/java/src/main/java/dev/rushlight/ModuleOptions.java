package dev.rushlight;

import java.nio.file.Path;
import java.util.List;

/** How a {@link Module} is opened; what is not set is the default. */
public final class ModuleOptions {
  /** For kernels, the caller's among them; 0: one for each core. */
  public int threads;

  /** Bytes for methods; 0: none. */
  public long memoryLimit;

  /** Bytes for each method; 0: 1 MiB. */
  public long scratchBytes;

  /** Of a run; 0: 10,000,000. */
  public long maxInstructions;

  /** The .ptd that belongs to the program, or null. */
  public Path dataPath;

  /** Shared libraries with kernels of operators of your own. */
  public List<Path> kernelLibraries = List.of();

  /** Shared libraries with backends. */
  public List<Path> backendLibraries = List.of();

  /** The file is read, not mapped, and may be written meanwhile. */
  public boolean readsFile;

  /** Each use asks whether the file has changed. */
  public boolean guardsFile;

  /** {@link Module#failureReport()} has the last failure. */
  public boolean reportsFailures;

  long[] numbers() {
    return new long[] {
      threads,
      memoryLimit,
      scratchBytes,
      maxInstructions,
      readsFile ? 1 : 0,
      guardsFile ? 1 : 0,
      reportsFailures ? 1 : 0,
    };
  }
}
