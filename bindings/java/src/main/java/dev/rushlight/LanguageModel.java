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

  /** Opens a file. */
  public static LanguageModel open(Path path, LanguageModelOptions options) {
    byte[] template = options.chatTemplate == null ? null : Rushlight.text(options.chatTemplate);
    return new LanguageModel(
        openFile(
            Rushlight.path(path),
            options.numbers(),
            Rushlight.path(options.dataPath),
            template,
            Rushlight.paths(options.kernelLibraries),
            Rushlight.paths(options.backendLibraries)));
  }

  /** Opens a file. */
  public static LanguageModel open(Path path) {
    return open(path, new LanguageModelOptions());
  }

  /** Positions of a text. */
  public long context() {
    return describe(handle())[0];
  }

  /** How many tokens there are. */
  public long vocabularySize() {
    return describe(handle())[1];
  }

  /** The elements of an embedding; 0: the model makes none. */
  public long hidden() {
    return describe(handle())[2];
  }

  /** Bytes of keys and values that are taken now. */
  public long cacheBytes() {
    return describe(handle())[3];
  }

  /** The most bytes of keys and values. */
  public long cacheLimit() {
    return describe(handle())[4];
  }

  /** Whether there are texts, or only tokens. */
  public boolean hasTokenizer() {
    return describe(handle())[5] != 0;
  }

  /** Whether {@link #encodeChat} works. */
  public boolean hasChatTemplate() {
    return describe(handle())[6] != 0;
  }

  /**
   * The tokens of a text. {@code addSpecial}: with those that surround each text; {@code
   * parseSpecial}: the texts of special tokens become these, not for texts of others.
   */
  public int[] encode(String text, boolean addSpecial, boolean parseSpecial) {
    int flags = (addSpecial ? ADD_SPECIAL : 0) | (parseSpecial ? PARSE_SPECIAL : 0);
    return encode(handle(), text.getBytes(StandardCharsets.UTF_8), flags);
  }

  /** The tokens of a text, with those that surround each text. */
  public int[] encode(String text) {
    return encode(text, true, false);
  }

  /** The tokens of a conversation: JSON with "messages" and what else the template reads. */
  public int[] encodeChat(String json) {
    return encodeChat(handle(), json.getBytes(StandardCharsets.UTF_8));
  }

  /** The text of tokens. */
  public String decode(int[] tokens, boolean skipSpecial) {
    return Rushlight.text(decode(handle(), tokens, skipSpecial ? SKIP_SPECIAL : 0));
  }

  /** The text of tokens, without special ones. */
  public String decode(int[] tokens) {
    return decode(tokens, true);
  }

  /** Texts that match a regular expression. */
  public Grammar grammarFromRegex(String pattern) {
    return new Grammar(newGrammar(handle(), pattern.getBytes(StandardCharsets.UTF_8), false));
  }

  /** JSON that a schema accepts. */
  public Grammar grammarFromJsonSchema(String schema) {
    return new Grammar(newGrammar(handle(), schema.getBytes(StandardCharsets.UTF_8), true));
  }

  /** Opens an adapter of this model. */
  public Adapter adapter(Path path) {
    return new Adapter(newAdapter(handle(), Rushlight.path(path)));
  }

  /** What the model's makers recommend. */
  public GenerateOptions defaults() {
    long[] integers = new long[GenerateOptions.INTEGERS];
    float[] numbers = new float[GenerateOptions.NUMBERS];
    defaults(handle(), integers, numbers);
    return new GenerateOptions(integers, numbers);
  }

  /** Generates texts after a prompt; the listener may be null. */
  public Statistics generate(int[] prompt, GenerateOptions options, TextListener listener) {
    return generate(handle(), false, prompt, options, listener);
  }

  /** The vector of each text, of the length 1. */
  public float[][] embed(String... texts) {
    return embed(true, false, texts);
  }

  /**
   * The vector of each text. {@code normalizes}: to the length 1; {@code truncates}: texts beyond
   * the context are cut, otherwise refused.
   */
  public float[][] embed(boolean normalizes, boolean truncates, String... texts) {
    byte[][] bytes = new byte[texts.length][];
    for (int i = 0; i < texts.length; i++) bytes[i] = texts[i].getBytes(StandardCharsets.UTF_8);
    float[] all = embed(handle(), bytes, normalizes, truncates);
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
    return restore(path, null);
  }

  /** The same of a session with an adapter. */
  public Session restore(Path path, Adapter adapter) {
    long with = adapter == null ? 0 : adapter.handle();
    return new Session(restore(handle(), Rushlight.path(path), with));
  }

  /** Records the model's steps from now on: see {@link Module#startTrace}. */
  public void startTrace(TraceValues values, long bytes, long valueBytes) {
    startTrace(handle(), values.ordinal(), bytes, valueBytes);
  }

  /** Records no more, and keeps what was recorded. */
  public void stopTrace() {
    stopTrace(handle());
  }

  /** Writes the trace to a file, and its values to one with ".values" at its end. */
  public void saveTrace(Path path) {
    saveTrace(handle(), Rushlight.path(path));
  }

  @Override
  void closeHandle(long handle) {
    closeModel(handle);
  }

  // Called by the native library.
  private static boolean tell(
      TextListener listener, int choice, byte[] text, int[] tokens, float[] logprobs) {
    return listener.piece(choice, Rushlight.text(text), tokens, logprobs);
  }

  static Statistics generate(
      long handle,
      boolean isSession,
      int[] prompt,
      GenerateOptions options,
      TextListener listener) {
    return new Statistics(
        generate(
            handle,
            isSession,
            prompt,
            options.integers(),
            options.numbers(),
            options.stops(),
            options.stopTokens,
            options.grammarHandle(),
            options.adapterHandle(),
            listener));
  }

  private static final int ADD_SPECIAL = 1;
  private static final int PARSE_SPECIAL = 2;
  private static final int SKIP_SPECIAL = 4;

  private static native long openFile(
      byte[] path,
      long[] numbers,
      byte[] data,
      byte[] chatTemplate,
      byte[][] kernels,
      byte[][] backends);

  private static native void closeModel(long model);

  private static native long[] describe(long model);

  private static native int[] encode(long model, byte[] text, int flags);

  private static native int[] encodeChat(long model, byte[] json);

  private static native byte[] decode(long model, int[] tokens, int flags);

  private static native void defaults(long model, long[] integers, float[] numbers);

  private static native long[] generate(
      long handle,
      boolean isSession,
      int[] prompt,
      long[] integers,
      float[] numbers,
      byte[][] stop,
      int[] stopTokens,
      long grammar,
      long adapter,
      TextListener listener);

  private static native float[] embed(
      long model, byte[][] texts, boolean normalizes, boolean truncates);

  private static native long openSession(long model);

  private static native long restore(long model, byte[] path, long adapter);

  private static native long newGrammar(long model, byte[] text, boolean isSchema);

  private static native long newAdapter(long model, byte[] path);

  private static native void startTrace(long model, int values, long bytes, long valueBytes);

  private static native void stopTrace(long model);

  private static native void saveTrace(long model, byte[] path);
}
