package dev.rushlight;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/** A language model. Any number of threads may use it, and their texts are computed together. */
public final class LanguageModel extends Handle {
  static {
    Rushlight.load();
  }

  private LanguageModel(long handle) {
    super(handle);
  }

  /** Opens a file. {@code threads} 0: one for each core. */
  public static LanguageModel open(Path path, int threads) {
    return new LanguageModel(openFile(Rushlight.text(path.toString()), threads));
  }

  /** Opens a file. */
  public static LanguageModel open(Path path) {
    return open(path, 0);
  }

  /** The tokens of a text, with those that surround each text. */
  public int[] encode(String text) {
    return encode(handle(), text.getBytes(StandardCharsets.UTF_8));
  }

  /** The tokens of a conversation: JSON with "messages" and what else the template reads. */
  public int[] encodeChat(String json) {
    return encodeChat(handle(), json.getBytes(StandardCharsets.UTF_8));
  }

  /** The text of tokens, without special ones. */
  public String decode(int[] tokens) {
    return Rushlight.text(decode(handle(), tokens));
  }

  /** What the model's makers recommend. */
  public GenerateOptions defaults() {
    long[] integers = new long[5];
    float[] numbers = new float[4];
    defaults(handle(), integers, numbers);
    return new GenerateOptions(integers, numbers);
  }

  /** Generates texts after a prompt; returns the number of tokens of all of them. */
  public long generate(int[] prompt, GenerateOptions options, TextListener listener) {
    return generate(
        handle(), false, prompt, options.integers(), options.numbers(), options.stops(), listener);
  }

  /** The vector of each text, of the length 1. */
  public float[][] embed(String... texts) {
    byte[][] bytes = new byte[texts.length][];
    for (int i = 0; i < texts.length; i++) bytes[i] = texts[i].getBytes(StandardCharsets.UTF_8);
    float[] all = embed(handle(), bytes);
    int width = texts.length == 0 ? 0 : all.length / texts.length;
    float[][] vectors = new float[texts.length][width];
    for (int i = 0; i < texts.length; i++) System.arraycopy(all, i * width, vectors[i], 0, width);
    return vectors;
  }

  /** A session without tokens. */
  public Session session() {
    return new Session(openSession(handle()));
  }

  /** A session from a file of {@link Session#save(Path)}. */
  public Session restore(Path path) {
    return new Session(restore(handle(), Rushlight.text(path.toString())));
  }

  @Override
  void closeHandle(long handle) {
    closeModel(handle);
  }

  // Called by the native library.
  private static boolean tell(TextListener listener, int choice, byte[] text, int[] tokens) {
    return listener.piece(choice, Rushlight.text(text), tokens);
  }

  private static native long openFile(byte[] path, int threads);

  private static native void closeModel(long model);

  private static native int[] encode(long model, byte[] text);

  private static native int[] encodeChat(long model, byte[] json);

  private static native byte[] decode(long model, int[] tokens);

  private static native void defaults(long model, long[] integers, float[] numbers);

  static native long generate(
      long handle,
      boolean isSession,
      int[] prompt,
      long[] integers,
      float[] numbers,
      byte[][] stop,
      TextListener listener);

  private static native float[] embed(long model, byte[][] texts);

  private static native long openSession(long model);

  private static native long restore(long model, byte[] path);
}
