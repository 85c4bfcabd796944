package dev.rushlight;

/** What a trace records beside times. */
public enum TraceValues {
  NONE,
  /** The results of methods. */
  OUTPUTS,
  /** What each operator writes, too. */
  ALL
}
