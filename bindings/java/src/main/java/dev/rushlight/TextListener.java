package dev.rushlight;

/** Is told of texts while they are generated, on the thread that generates them. */
@FunctionalInterface
public interface TextListener {
  /**
   * New tokens of a text, and the whole characters that they make.
   *
   * @param choice which of the n texts
   * @return false to end all texts
   */
  boolean piece(int choice, String text, int[] tokens);

  /**
   * The same with the tokens' log probabilities, which {@link GenerateOptions#logprobs} asks for;
   * otherwise they are null.
   */
  default boolean piece(int choice, String text, int[] tokens, float[] logprobs) {
    return piece(choice, text, tokens);
  }
}
