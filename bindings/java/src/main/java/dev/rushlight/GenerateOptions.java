package dev.rushlight;

/** How texts are generated; {@link LanguageModel#defaults()} has what the model's makers say. */
public final class GenerateOptions {
  static final int INTEGERS = 11;
  static final int NUMBERS = 7;

  /** Texts for the prompt; 1 in a session. */
  public int n;

  /** Tokens of output; 0: as many as the context has room for. */
  public long maxTokens;

  public long seed;

  /** 0: all. */
  public int topK;

  /** The model's own end tokens do not end the output. */
  public boolean ignoresEnd;

  /** The output begins with the prompt. */
  public boolean echoes;

  /** The text has the special tokens. */
  public boolean hasSpecial;

  /** In a full context, half of what follows {@link #keep} tokens is dropped. */
  public boolean shifts;

  public long keep;

  /** The most tokens that speculation proposes; 0: none. */
  public int guesses;

  /** Pieces have log probabilities. */
  public boolean logprobs;

  /** 0: always the most probable token. */
  public float temperature;

  public float topP;
  public float minP;
  public float typicalP;
  public float repetitionPenalty;
  public float presencePenalty;
  public float frequencyPenalty;

  /** Texts that end the output, which are not part of it. */
  public String[] stop = {};

  /** Tokens that end it, besides the model's own end tokens. */
  public int[] stopTokens = {};

  /** What the text may be; null: anything. */
  public Grammar grammar;

  /** null: the model alone, or the session's own. */
  public Adapter adapter;

  GenerateOptions(long[] integers, float[] numbers) {
    n = (int) integers[0];
    maxTokens = integers[1];
    seed = integers[2];
    topK = (int) integers[3];
    ignoresEnd = integers[4] != 0;
    echoes = integers[5] != 0;
    hasSpecial = integers[6] != 0;
    shifts = integers[7] != 0;
    keep = integers[8];
    guesses = (int) integers[9];
    logprobs = integers[10] >= 0;
    temperature = numbers[0];
    topP = numbers[1];
    minP = numbers[2];
    typicalP = numbers[3];
    repetitionPenalty = numbers[4];
    presencePenalty = numbers[5];
    frequencyPenalty = numbers[6];
  }

  long[] integers() {
    return new long[] {
      n,
      maxTokens,
      seed,
      topK,
      ignoresEnd ? 1 : 0,
      echoes ? 1 : 0,
      hasSpecial ? 1 : 0,
      shifts ? 1 : 0,
      keep,
      guesses,
      logprobs ? 0 : -1,
    };
  }

  float[] numbers() {
    return new float[] {
      temperature, topP, minP, typicalP, repetitionPenalty, presencePenalty, frequencyPenalty
    };
  }

  byte[][] stops() {
    byte[][] texts = new byte[stop.length][];
    for (int i = 0; i < stop.length; i++) texts[i] = Rushlight.text(stop[i]);
    return texts;
  }

  long grammarHandle() {
    return grammar == null ? 0 : grammar.handle();
  }

  long adapterHandle() {
    return adapter == null ? 0 : adapter.handle();
  }
}
