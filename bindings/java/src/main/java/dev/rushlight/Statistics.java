package dev.rushlight;

/** What a call of {@code generate} did. */
public final class Statistics {
  /** Why a text ended. */
  public enum Finish {
    NONE,
    STOP,
    LENGTH,
    CONTEXT,
    CANCELLED,
    FAILED
  }

  /** Of the last text that ended. */
  public final Finish finish;

  public final long promptTokens;

  /** Of the prompt, that were in the cache. */
  public final long reusedTokens;

  /** Of all texts. */
  public final long outputTokens;

  public final long guessedTokens;
  public final long acceptedTokens;
  public final long recomputedTokens;
  public final long steps;

  /** From the call to the first token. */
  public final long firstTokenNanos;

  /** From the call to the end. */
  public final long nanos;

  Statistics(long[] numbers) {
    finish = Finish.values()[(int) numbers[0]];
    promptTokens = numbers[1];
    reusedTokens = numbers[2];
    outputTokens = numbers[3];
    guessedTokens = numbers[4];
    acceptedTokens = numbers[5];
    recomputedTokens = numbers[6];
    steps = numbers[7];
    firstTokenNanos = numbers[8];
    nanos = numbers[9];
  }
}
