using System;

namespace Tautline
{
    /// <summary>A CURVE key pair in Z85: 40 characters for each key.</summary>
    public sealed unsafe class CurveKeyPair
    {
        const int Length = 41;

        CurveKeyPair(string publicKey, string secretKey)
        {
            PublicKey = publicKey;
            SecretKey = secretKey;
        }

        /// <summary>The public key, which peers may know.</summary>
        public string PublicKey { get; private set; }

        /// <summary>The secret key. Keep it private.</summary>
        public string SecretKey { get; private set; }

        /// <summary>Generates a new key pair.</summary>
        public static CurveKeyPair Generate()
        {
            Library.Load();
            byte* open = stackalloc byte[Length];
            byte* secret = stackalloc byte[Length];
            ZmqException.Check(Native.zmq_curve_keypair(open, secret));
            return new CurveKeyPair(Library.Text(open, Length), Library.Text(secret, Length));
        }

        /// <summary>Derives the key pair from a secret key.</summary>
        /// <param name="secretKey">The secret key in Z85.</param>
        public static CurveKeyPair FromSecretKey(string secretKey)
        {
            Library.Load();
            byte* open = stackalloc byte[Length];
            fixed (byte* secret = Library.Text(Argument.NotNull(secretKey, nameof(secretKey))))
                ZmqException.Check(Native.zmq_curve_public(open, secret));
            return new CurveKeyPair(Library.Text(open, Length), secretKey);
        }

        /// <summary>Makes a socket a CURVE server, which proves that it has this pair's secret key.</summary>
        /// <param name="socket">The socket, not yet bound or connected.</param>
        public void ApplyToServer(Socket socket)
        {
            Argument.NotNull(socket, nameof(socket));
            socket.CurveServer = true;
            socket.CurveSecretKey = SecretKey;
        }

        /// <summary>Makes a socket a CURVE client with this key pair.</summary>
        /// <param name="socket">The socket, not yet bound or connected.</param>
        /// <param name="serverKey">The server's public key in Z85.</param>
        public void ApplyToClient(Socket socket, string serverKey)
        {
            Argument.NotNull(socket, nameof(socket));
            socket.CurveServerKey = serverKey;
            socket.CurvePublicKey = PublicKey;
            socket.CurveSecretKey = SecretKey;
        }
    }
}
