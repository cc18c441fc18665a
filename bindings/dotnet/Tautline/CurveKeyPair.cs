using System;

namespace Tautline
{
    /// <summary>The keys of one side for CURVE, in Z85: 40 characters each.</summary>
    public sealed unsafe class CurveKeyPair
    {
        const int Length = 41;

        CurveKeyPair(string publicKey, string secretKey)
        {
            PublicKey = publicKey;
            SecretKey = secretKey;
        }

        /// <summary>The key that others may know.</summary>
        public string PublicKey { get; private set; }

        /// <summary>The key that nobody else may know.</summary>
        public string SecretKey { get; private set; }

        /// <summary>Makes a new pair.</summary>
        public static CurveKeyPair Generate()
        {
            Library.Load();
            byte* open = stackalloc byte[Length];
            byte* secret = stackalloc byte[Length];
            ZmqException.Check(Native.zmq_curve_keypair(open, secret));
            return new CurveKeyPair(Library.Text(open, Length), Library.Text(secret, Length));
        }

        /// <summary>The pair that a secret key belongs to.</summary>
        /// <param name="secretKey">The secret key in Z85.</param>
        public static CurveKeyPair FromSecretKey(string secretKey)
        {
            Library.Load();
            byte* open = stackalloc byte[Length];
            fixed (byte* secret = Library.Text(Argument.NotNull(secretKey, nameof(secretKey))))
                ZmqException.Check(Native.zmq_curve_public(open, secret));
            return new CurveKeyPair(Library.Text(open, Length), secretKey);
        }

        /// <summary>Makes a socket the server: it proves that it has this pair's secret key.</summary>
        /// <param name="socket">The socket, not yet bound or connected.</param>
        public void ApplyToServer(Socket socket)
        {
            Argument.NotNull(socket, nameof(socket));
            socket.CurveServer = true;
            socket.CurveSecretKey = SecretKey;
        }

        /// <summary>Makes a socket a client with this pair.</summary>
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
