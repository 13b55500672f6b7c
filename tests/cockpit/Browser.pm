# SPDX-License-Identifier: GPL-2.0-or-later
# The page in a real browser: cockpit-ws with the session of a user, chromedriver, and Chromium, which ends with the test.
package Browser;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use File::Path qw(make_path);
use HTTP::Tiny;
use IO::Socket::INET;
use JSON::XS;
use MIME::Base64 qw(decode_base64);
use POSIX ();
use Time::HiRes qw(sleep time);

use Nobody;

use constant DEADLINE => 60;
use constant ELEMENT  => 'element-6066-11e4-a52e-4f735466cecf';    # the key of the protocol

my $SOURCE = abs_path(dirname(__FILE__) . '/../../src/cockpit');
my $driver_url;
my (@pids, %open); # sessions of browsers that have not quit

# Why the tests of the page cannot run here, or undef.
sub missing {
        for ('/usr/bin/chromedriver', '/usr/bin/chromium', '/usr/bin/cockpit-bridge', '/usr/share/cockpit/base1') {
                return "no $_: see make deps-cockpit" if !-e;
        }
        return 'needs root' if $> != 0;
        return;
}

sub start {
        my ($user, $log, @command) = @_;
        my $pid = fork // die "fork: $!";
        if (!$pid) {
                open STDIN,  '<',  '/dev/null' or die $!;
                open STDOUT, '>>', $log        or die $!;
                open STDERR, '>&', \*STDOUT    or die $!;
                setpgrp;
                become($user) if $user ne 'root';
                exec @command or POSIX::_exit(127);
        }
        push @pids, $pid;
        return $pid;
}

sub end {
        my ($pid) = @_;
        kill 'TERM', -$pid;
        kill 'TERM', $pid;
        waitpid $pid, 0;
        @pids = grep { $_ != $pid } @pids;
        return;
}
END {
        local $?;
        eval { $_->command('DELETE', '') } for values %open;
        end($_) for @pids;
}

# The network of the node has no loopback yet. Returns a port that is free in it.
sub free_port {
        system('ip', 'link', 'set', 'lo', 'up') == 0 or die "ip link set lo up\n";
        my $socket = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') or die "no port: $@";
        return $socket->sockport;
}

sub wait_for_port {
        my ($port, $what) = @_;
        for (my $end = time + DEADLINE; time < $end; sleep 0.02) {
                return if IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port");
        }
        die "$what does not listen on port $port\n";
}

# Starts cockpit-ws with the session of a user, without a login, and returns its process id. It listens on the port of the node's loopback,
# or on an open socket.
sub serve {
        my ($user, $port, $socket) = @_;
        my $data = "$ENV{NODE_TMP}/data";
        # Other users may not be able to read the checkout.
        make_path("$data/cockpit");
        system('cp', '-RL', $SOURCE, "$data/cockpit/passthrough") == 0 or die "cp\n" if !-e "$data/cockpit/passthrough";
        local @ENV{qw(XDG_DATA_HOME LC_ALL HOME)} = ($data, 'C.UTF-8', '/nonexistent');
        my ($ws) = grep { -x } map { "$_/cockpit-ws" } qw(/usr/lib/cockpit /usr/libexec);
        my @command = ($ws, '--local-session=/usr/bin/cockpit-bridge', '--no-tls', '--address', '127.0.0.1', '--port', $port);
        # A socket is passed as by systemd.
        my $move = !$socket || $socket == 3 ? '' : "3<&$socket $socket<&-";
        @command = ('bash', '-c', "LISTEN_FDS=1 LISTEN_PID=\$\$ exec \"\$@\" $move", 'bash', @command) if $socket;
        my $pid = start($user, "$ENV{NODE_TMP}/cockpit-$user.log", @command);
        wait_for_port($port, 'cockpit-ws') if !$socket;
        return $pid;
}

# A browser with the page as a user sees it. Options: user, width, height, dark, shell (the page in Cockpit's own frame).
sub new {
        my ($class, %options) = @_;
        my $self = bless { http => HTTP::Tiny->new(timeout => DEADLINE), port => free_port() }, $class;
        $self->{ws} = serve($options{user} // 'root', $self->{port});
        start_driver();
        # Nothing but the page is asked for, and nothing outside.
        my @arguments = ('--headless=new', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
                '--disable-sync', '--disable-dev-shm-usage', "--user-data-dir=$ENV{NODE_TMP}/chromium-$self->{port}", '--window-size=' . ($options{width} // 1280) . ',' . ($options{height} // 1000));
        push @arguments, '--blink-settings=preferredColorScheme=0' if $options{dark};
        my $session = $self->command('POST', '/session', { capabilities => { alwaysMatch => { browserName => 'chrome', 'goog:chromeOptions' => { args => \@arguments },
                'goog:loggingPrefs' => { browser => 'ALL', performance => 'ALL' } } } });
        $self->{session} = $session->{sessionId};
        $open{ $self->{session} } = $self;
        $self->open($options{shell});
        return $self;
}

sub start_driver {
        return if $driver_url;
        my $port = free_port();
        start('root', "$ENV{NODE_TMP}/chromedriver.log", 'chromedriver', "--port=$port");
        wait_for_port($port, 'chromedriver');
        $driver_url = "http://127.0.0.1:$port";
        return;
}

sub open {
        my ($self, $shell) = @_;
        $self->command('POST', 'url', { url => "http://127.0.0.1:$self->{port}/" . ($shell ? 'passthrough' : 'cockpit/@localhost/passthrough/index.html') });
        return;
}

sub command {
        my ($self, $method, $path, $body) = @_;
        my $url = $path =~ m{^/} ? "$driver_url$path" : "$driver_url/session/$self->{session}" . ($path ne q() ? "/$path" : q());
        my $reply = $self->{http}->request($method, $url, $method eq 'POST' ? { content => encode_json($body // {}), headers => { 'Content-Type' => 'application/json' } } : {});
        my $value = eval { decode_json($reply->{content})->{value} };
        die "WebDriver $path: " . ($value->{message} // $reply->{content}) . "\n" if !$reply->{success};
        return $value;
}

# What a function body in JavaScript returns.
sub script {
        my ($self, $body, @arguments) = @_;
        return $self->command('POST', 'execute/sync', { script => $body, args => \@arguments });
}

# True as soon as the body, as for script(), returns something true; what it returns.
sub becomes {
        my ($self, $body, @arguments) = @_;
        for (my $end = time + DEADLINE; time < $end; sleep 0.03) {
                my $value = eval { $self->script($body, @arguments) };
                return $value if $value;
        }
        return;
}

# The visible text of what a selector finds, and whether it shows a text in time.
sub text { my ($self, $selector) = @_; return $self->script('return document.querySelector(arguments[0])?.innerText ?? ""', $selector) }

sub shows {
        my ($self, $selector, $text) = @_;
        return $self->becomes('return [...document.querySelectorAll(arguments[0])].some(e => e.innerText.includes(arguments[1]))', $selector, $text);
}

sub gone {
        my ($self, $selector, $text) = @_;
        return $self->becomes('return ![...document.querySelectorAll(arguments[0])].some(e => e.innerText.includes(arguments[1] ?? ""))', $selector, $text // '');
}

# A click as a user makes it: the element must be visible and uncovered.
sub click {
        my ($self, $selector) = @_;
        $self->becomes('const e = document.querySelector(arguments[0]); return e && !e.disabled && e.getClientRects().length', $selector) or die "no $selector to click\n";
        my $element = $self->command('POST', 'element', { using => 'css selector', value => $selector });
        $self->command('POST', "element/$element->{+ELEMENT}/click");
        return;
}

# Presses a key, or types a text, where the focus is.
my %KEYS = (Tab => "\x{e004}", Enter => "\x{e007}", Escape => "\x{e00c}", Space => ' ', Left => "\x{e012}", Up => "\x{e013}", Right => "\x{e014}", Down => "\x{e015}");

sub keys {
        my ($self, @keys) = @_;
        my @actions = map { my $key = $_; map { ({ type => 'keyDown', value => $_ }, { type => 'keyUp', value => $_ }) } $KEYS{$key} // split //, $key } @keys;
        $self->command('POST', 'actions', { actions => [{ type => 'key', id => 'keyboard', actions => \@actions }] });
        return;
}

# Sets the value of a field as if it were typed at once.
sub fill {
        my ($self, $selector, $value) = @_;
        $self->becomes('return document.querySelector(arguments[0])', $selector) or die "no $selector to fill\n";
        $self->script('const e = document.querySelector(arguments[0]); e.focus(); e.value = arguments[1]; e.dispatchEvent(new Event("input", { bubbles: true }))', $selector, $value);
        return;
}

# Fills the form for an allocation and sends it. The fields are names of pools, and of inputs.
sub allocate {
        my ($self, $name, %fields) = @_;
        $self->click('[data-action="Allocate"]');
        $self->fill(qq{form :is([data-pool="$_"], [name="$_"])}, $fields{$_}) for CORE::keys %fields;
        $self->fill('form [name=name]', $name);
        return $self->click('form [type=submit]');
}

sub screenshot {
        my ($self, $file) = @_;
        my $png = $self->command('GET', 'screenshot');
        CORE::open my $out, '>:raw', $file or die "$file: $!";
        print $out decode_base64($png);
        close $out or die "$file: $!";
        return;
}

# What the page wrote to the console as errors.
sub errors { my ($self) = @_; return map { $_->{message} } grep { $_->{level} eq 'SEVERE' } @{ $self->command('POST', 'se/log', { type => 'browser' }) } }

# The addresses of all requests since the last call.
sub requests {
        my ($self) = @_;
        my @messages = map { JSON::XS->new->decode($_->{message})->{message} } @{ $self->command('POST', 'se/log', { type => 'performance' }) };
        return map { $_->{params}{request}{url} } grep { $_->{method} eq 'Network.requestWillBeSent' } @messages;
}

sub quit {
        my ($self) = @_;
        $self->command('DELETE', '');
        delete $open{ $self->{session} };
        end($self->{ws});
        return;
}

1;
