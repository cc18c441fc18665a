namespace Tautline
{
    /// <summary>One peer, both ways.</summary>
    public sealed class PairSocket : Socket
    {
        /// <summary>One in that context.</summary>
        /// <param name="context">What it lives in.</param>
        public PairSocket(Context context)
            : base(context, SocketType.Pair)
        {
        }
    }

    /// <summary>Publishes to all that subscribe.</summary>
    public sealed class PublisherSocket : Socket
    {
        /// <summary>One in that context.</summary>
        /// <param name="context">What it lives in.</param>
        public PublisherSocket(Context context)
            : base(context, SocketType.Publisher)
        {
        }
    }

    /// <summary>Receives what it has subscribed to (<see cref="Socket.Subscribe(string)"/>).</summary>
    public sealed class SubscriberSocket : Socket
    {
        /// <summary>One in that context.</summary>
        /// <param name="context">What it lives in.</param>
        public SubscriberSocket(Context context)
            : base(context, SocketType.Subscriber)
        {
        }
    }

    /// <summary>Asks, and waits for the answer.</summary>
    public sealed class RequestSocket : Socket
    {
        /// <summary>One in that context.</summary>
        /// <param name="context">What it lives in.</param>
        public RequestSocket(Context context)
            : base(context, SocketType.Request)
        {
        }
    }

    /// <summary>Answers.</summary>
    public sealed class ReplySocket : Socket
    {
        /// <summary>One in that context.</summary>
        /// <param name="context">What it lives in.</param>
        public ReplySocket(Context context)
            : base(context, SocketType.Reply)
        {
        }
    }

    /// <summary>Asks many without waiting.</summary>
    public sealed class DealerSocket : Socket
    {
        /// <summary>One in that context.</summary>
        /// <param name="context">What it lives in.</param>
        public DealerSocket(Context context)
            : base(context, SocketType.Dealer)
        {
        }
    }

    /// <summary>Answers by name, in any order.</summary>
    public sealed class RouterSocket : Socket
    {
        /// <summary>One in that context.</summary>
        /// <param name="context">What it lives in.</param>
        public RouterSocket(Context context)
            : base(context, SocketType.Router)
        {
        }
    }

    /// <summary>Collects work.</summary>
    public sealed class PullSocket : Socket
    {
        /// <summary>One in that context.</summary>
        /// <param name="context">What it lives in.</param>
        public PullSocket(Context context)
            : base(context, SocketType.Pull)
        {
        }
    }

    /// <summary>Distributes work.</summary>
    public sealed class PushSocket : Socket
    {
        /// <summary>One in that context.</summary>
        /// <param name="context">What it lives in.</param>
        public PushSocket(Context context)
            : base(context, SocketType.Push)
        {
        }
    }

    /// <summary>A publisher that sees the subscriptions.</summary>
    public sealed class XPublisherSocket : Socket
    {
        /// <summary>One in that context.</summary>
        /// <param name="context">What it lives in.</param>
        public XPublisherSocket(Context context)
            : base(context, SocketType.XPublisher)
        {
        }
    }

    /// <summary>A subscriber that sends its subscriptions as messages.</summary>
    public sealed class XSubscriberSocket : Socket
    {
        /// <summary>One in that context.</summary>
        /// <param name="context">What it lives in.</param>
        public XSubscriberSocket(Context context)
            : base(context, SocketType.XSubscriber)
        {
        }
    }

    /// <summary>Plain TCP.</summary>
    public sealed class StreamSocket : Socket
    {
        /// <summary>One in that context.</summary>
        /// <param name="context">What it lives in.</param>
        public StreamSocket(Context context)
            : base(context, SocketType.Stream)
        {
        }
    }
}
