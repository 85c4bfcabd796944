package dev.rushlight;

import java.nio.file.Path;

/** A text that is kept, with its cache. One thread at a time may use it, except to cancel. */
public final class Session extends Handle {
  Session(long handle) {
    super(handle);
  }

  /** Adds the prompt to the text, and then what is generated; the listener may be null. */
  public Statistics generate(int[] prompt, GenerateOptions options, TextListener listener) {
    return LanguageModel.generate(handle(), true, prompt, options, listener);
  }

  /** Ends what another thread generates, at the next token. */
  public void cancel() {
    cancel(handle());
  }

  /** A session with the same text, which shares its cache. */
  public Session fork() {
    return new Session(fork(handle()));
  }

  /** Drops the last tokens. */
  public void rewind(long count) {
    rewind(handle(), count);
  }

  /** Replaces the text; the cache of what both begin with is kept. */
  public void setTokens(int[] tokens) {
    setTokens(handle(), tokens);
  }

  /** The tokens of the text. */
  public int[] tokens() {
    return tokens(handle());
  }

  /** Writes the text and its cache to a file, for {@link LanguageModel#restore(Path)}. */
  public void save(Path path) {
    save(handle(), Rushlight.text(path.toString()));
  }

  @Override
  void closeHandle(long handle) {
    closeSession(handle);
  }

  private static native void closeSession(long session);

  private static native void cancel(long session);

  private static native long fork(long session);

  private static native void rewind(long session, long count);

  private static native int[] tokens(long session);

  private static native void setTokens(long session, int[] tokens);

  private static native void save(long session, byte[] path);
}
