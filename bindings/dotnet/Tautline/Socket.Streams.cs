#if SPANS
using System.Collections.Generic;
using System.Threading;
using System.Threading.Tasks;

namespace Tautline
{
    // A stream ends as ReceiveAsync does: with an OperationCanceledException, an
    // ObjectDisposedException or a ZmqException. A step takes exactly one message, without
    // prefetching. All later messages stay in the socket.
    public partial class Socket
    {
        /// <summary>Receives part after part, for <c>await foreach</c>. Allocates no memory for a
        /// part that is already available.</summary>
        /// <param name="token">Ends the stream with an
        /// <see cref="System.OperationCanceledException"/>. No part is lost.</param>
        /// <returns>The same <see cref="Message"/> in each step. The message belongs to the
        /// stream and is valid until the next step. To keep its content longer, copy it
        /// (<see cref="Message.Clone"/>, <see cref="Message.ToArray"/>). The program may
        /// forward it.</returns>
        /// <remarks>The stream has no end: it throws an
        /// <see cref="System.ObjectDisposedException"/> when the socket is disposed and a
        /// <see cref="ContextTerminatedException"/> when the context is. <see cref="Message.HasMore"/>
        /// is true if another part of the same message follows.</remarks>
        public IAsyncEnumerable<Message> ReceiveAllAsync(CancellationToken token = default(CancellationToken))
        {
            return new Stream<Message>(token, either => new PartSteps<Message>(this, part => part, either));
        }

        /// <summary>Receives part after part, each into a new array; see
        /// <see cref="ReceiveAllAsync"/>.</summary>
        /// <param name="token">Ends the stream with an
        /// <see cref="System.OperationCanceledException"/>. No part is lost.</param>
        public IAsyncEnumerable<byte[]> ReceiveAllBytesAsync(CancellationToken token = default(CancellationToken))
        {
            return new Stream<byte[]>(token, either => new PartSteps<byte[]>(this, part => part.Take(), either));
        }

        /// <summary>Receives part after part, each as UTF-8 text; see
        /// <see cref="ReceiveAllAsync"/>.</summary>
        /// <param name="token">Ends the stream with an
        /// <see cref="System.OperationCanceledException"/>. No part is lost.</param>
        public IAsyncEnumerable<string> ReceiveAllStringsAsync(CancellationToken token = default(CancellationToken))
        {
            return new Stream<string>(token, either => new PartSteps<string>(this, part => part.ToString(), either));
        }

        /// <summary>Receives message after message, each with all its parts; see
        /// <see cref="ReceiveAllAsync"/>.</summary>
        /// <param name="token">Ends the stream with an
        /// <see cref="System.OperationCanceledException"/>. No message is lost.</param>
        public IAsyncEnumerable<List<byte[]>> ReceiveAllMultipartAsync(CancellationToken token = default(CancellationToken))
        {
            return new Stream<List<byte[]>>(token, either => new MultipartSteps(this, either));
        }

        /// <summary>Receives one part for a stream, as soon as one is available.</summary>
        internal Task<bool> PartLater(Message message, CancellationToken token)
        {
            return GetSharedDispatcher().Start(new StepOperation(message), false, token);
        }
    }
}
#endif
