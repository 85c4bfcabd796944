package dev.rushlight;

/** How texts are generated; {@link LanguageModel#defaults()} has what the model's makers say. */
public final class GenerateOptions {
  /** Texts for the prompt; 1 in a session. */
  public int n;

  /** Tokens of output; 0: as many as the context has room for. */
  public long maxTokens;

  public long seed;
  public int topK;

  /** The model's own end tokens do not end the output. */
  public boolean ignoresEnd;

  /** 0: always the most probable token. */
  public float temperature;

  public float topP;
  public float minP;
  public float repetitionPenalty;

  /** Texts that end the output, which are not part of it. */
  public String[] stop = {};

  GenerateOptions(long[] integers, float[] numbers) {
    n = (int) integers[0];
    maxTokens = integers[1];
    seed = integers[2];
    topK = (int) integers[3];
    ignoresEnd = integers[4] != 0;
    temperature = numbers[0];
    topP = numbers[1];
    minP = numbers[2];
    repetitionPenalty = numbers[3];
  }

  long[] integers() {
    return new long[] {n, maxTokens, seed, topK, ignoresEnd ? 1 : 0};
  }

  float[] numbers() {
    return new float[] {temperature, topP, minP, repetitionPenalty};
  }

  byte[][] stops() {
    byte[][] texts = new byte[stop.length][];
    for (int i = 0; i < stop.length; i++) texts[i] = Rushlight.text(stop[i]);
    return texts;
  }
}
