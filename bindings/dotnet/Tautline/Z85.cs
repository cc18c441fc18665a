using System;

namespace Tautline
{
    /// <summary>Bytes as printable text: 5 characters for 4 bytes (RFC 32).</summary>
    public static class Z85
    {
        const string Digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

        /// <summary>Encodes bytes as text.</summary>
        /// <param name="data">The bytes, a multiple of 4.</param>
        public static string Encode(byte[] data)
        {
            if (Argument.NotNull(data, nameof(data)).Length % 4 != 0)
                throw new ArgumentException("The length is not a multiple of 4.", nameof(data));
            var text = new char[data.Length / 4 * 5];
            for (int at = 0; at < data.Length / 4; at++)
            {
                uint value = 0;
                for (int of = 0; of < 4; of++)
                    value = value << 8 | data[at * 4 + of];
                for (int of = 4; of >= 0; of--)
                {
                    text[at * 5 + of] = Digits[(int)(value % 85)];
                    value /= 85;
                }
            }
            return new string(text);
        }

        /// <summary>Decodes text to bytes.</summary>
        /// <param name="text">The text, a multiple of 5 characters.</param>
        /// <exception cref="FormatException">The text is not Z85.</exception>
        public static byte[] Decode(string text)
        {
            if (Argument.NotNull(text, nameof(text)).Length % 5 != 0)
                throw new FormatException("The length is not a multiple of 5.");
            var data = new byte[text.Length / 5 * 4];
            for (int at = 0; at < text.Length / 5; at++)
            {
                ulong value = 0;
                for (int of = 0; of < 5; of++)
                {
                    int digit = Digits.IndexOf(text[at * 5 + of]);
                    if (digit < 0)
                        throw new FormatException("The text contains a character that Z85 does not have.");
                    value = value * 85 + (uint)digit;
                }
                if (value > uint.MaxValue)
                    throw new FormatException("The text contains five characters whose value exceeds four bytes.");
                for (int of = 3; of >= 0; of--)
                {
                    data[at * 4 + of] = (byte)value;
                    value >>= 8;
                }
            }
            return data;
        }
    }
}
