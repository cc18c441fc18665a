namespace Tautline
{
    /// <summary>Exchanges messages with one peer in both directions.</summary>
    public sealed class PairSocket : Socket
    {
        /// <summary>Creates a socket in a context.</summary>
        /// <param name="context">The context of the socket.</param>
        public PairSocket(Context context)
            : base(context, SocketType.Pair)
        {
        }
    }

    /// <summary>Publishes messages to all subscribers.</summary>
    public sealed class PublisherSocket : Socket
    {
        /// <summary>Creates a socket in a context.</summary>
        /// <param name="context">The context of the socket.</param>
        public PublisherSocket(Context context)
            : base(context, SocketType.Publisher)
        {
        }
    }

    /// <summary>Receives the messages that it has subscribed to (<see cref="Socket.Subscribe(string)"/>).</summary>
    public sealed class SubscriberSocket : Socket
    {
        /// <summary>Creates a socket in a context.</summary>
        /// <param name="context">The context of the socket.</param>
        public SubscriberSocket(Context context)
            : base(context, SocketType.Subscriber)
        {
        }
    }

    /// <summary>Sends a request and waits for the reply.</summary>
    public sealed class RequestSocket : Socket
    {
        /// <summary>Creates a socket in a context.</summary>
        /// <param name="context">The context of the socket.</param>
        public RequestSocket(Context context)
            : base(context, SocketType.Request)
        {
        }
    }

    /// <summary>Receives requests and sends replies.</summary>
    public sealed class ReplySocket : Socket
    {
        /// <summary>Creates a socket in a context.</summary>
        /// <param name="context">The context of the socket.</param>
        public ReplySocket(Context context)
            : base(context, SocketType.Reply)
        {
        }
    }

    /// <summary>Sends requests to many peers without waiting for replies.</summary>
    public sealed class DealerSocket : Socket
    {
        /// <summary>Creates a socket in a context.</summary>
        /// <param name="context">The context of the socket.</param>
        public DealerSocket(Context context)
            : base(context, SocketType.Dealer)
        {
        }
    }

    /// <summary>Addresses each peer by its routing id, in any order.</summary>
    public sealed class RouterSocket : Socket
    {
        /// <summary>Creates a socket in a context.</summary>
        /// <param name="context">The context of the socket.</param>
        public RouterSocket(Context context)
            : base(context, SocketType.Router)
        {
        }
    }

    /// <summary>Collects work.</summary>
    public sealed class PullSocket : Socket
    {
        /// <summary>Creates a socket in a context.</summary>
        /// <param name="context">The context of the socket.</param>
        public PullSocket(Context context)
            : base(context, SocketType.Pull)
        {
        }
    }

    /// <summary>Distributes work.</summary>
    public sealed class PushSocket : Socket
    {
        /// <summary>Creates a socket in a context.</summary>
        /// <param name="context">The context of the socket.</param>
        public PushSocket(Context context)
            : base(context, SocketType.Push)
        {
        }
    }

    /// <summary>A publisher that sees the subscriptions.</summary>
    public sealed class XPublisherSocket : Socket
    {
        /// <summary>Creates a socket in a context.</summary>
        /// <param name="context">The context of the socket.</param>
        public XPublisherSocket(Context context)
            : base(context, SocketType.XPublisher)
        {
        }
    }

    /// <summary>A subscriber that sends its subscriptions as messages.</summary>
    public sealed class XSubscriberSocket : Socket
    {
        /// <summary>Creates a socket in a context.</summary>
        /// <param name="context">The context of the socket.</param>
        public XSubscriberSocket(Context context)
            : base(context, SocketType.XSubscriber)
        {
        }
    }

    /// <summary>Plain TCP.</summary>
    public sealed class StreamSocket : Socket
    {
        /// <summary>Creates a socket in a context.</summary>
        /// <param name="context">The context of the socket.</param>
        public StreamSocket(Context context)
            : base(context, SocketType.Stream)
        {
        }
    }
}
