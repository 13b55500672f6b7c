#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0-or-later
# Users without administrative access: one who may not read, one who may only read, and one whom polkit lets allocate for himself.
use strict;
use warnings;

use FindBin;
use lib "$FindBin::Bin/../bus", $FindBin::Bin;

use Test::More;

use Browser;
use Node;
use Nobody;
use Polkit;

plan skip_all => Browser::missing() if Browser::missing();
node('hgx-h100', root => 1);
need_nobody();

my $bus = Bus->new->listen;
is(allocate($bus, 'others', gpu => 1), 'done', 'root has an allocation');

# ---- Who may not read

my $browser = Browser->new(user => 'games');
ok($browser->becomes('return document.body.dataset.state === "denied"'), 'a stranger may not read');
ok($browser->shows('.daemon-state', 'usermod -aG passthrough'), 'and is told which group to join');
is($browser->script('return document.querySelector(".content").getClientRects().length'), 0, 'and sees nothing');
$browser->quit;

# ---- Who may read

my $polkit = start_polkitd("$ENV{NODE_TMP}/polkit", "polkit.addRule(function(action, subject) { return polkit.Result.NO; });\n");
ok($polkit, 'polkit lets nobody do anything');
$browser = Browser->new(user => 'nobody');
ok($browser->shows('[data-allocation=others]', 'ready'), 'a member of the group sees the allocations');
ok($browser->shows('.device', 'others'), 'and the picture');
$browser->allocate('mine', gpu => 1);
ok($browser->shows('.alert', 'Turn on administrative access'), 'a refused call says how to get the right') or diag($browser->text('.alerts'));
is(allocation($bus, 'mine'), undef, 'and nothing was allocated');
$browser->quit;
end_polkitd();

# ---- Who may allocate

$polkit = start_polkitd("$ENV{NODE_TMP}/polkit", <<'END');
polkit.addRule(function(action, subject) {
    if (action.id == "org.passthroughd1.allocate" && subject.user == "nobody")
        return action.lookup("total.pool.gpu") > 1 ? polkit.Result.NO : polkit.Result.YES;
});
END
ok($polkit, 'polkit lets a user have one GPU');
$browser = Browser->new(user => 'nobody');
ok($browser->shows('[data-allocation=others]', 'ready'), 'the page is there');
$browser->allocate('mine', gpu => 1);
ok($browser->shows('[data-allocation=mine]', 'ready'), 'the user allocates it') or diag($browser->text('.alerts'));
is(allocation($bus, 'mine')->{owner}, scalar getpwnam('nobody'), 'for himself');
$browser->allocate('more', gpu => 1);
ok($browser->shows('.alert', 'Turn on administrative access'), 'a second one is refused');
$browser->click('form [data-action=Cancel]');
$browser->click('[data-allocation=others] [data-action=Release]');
$browser->click('dialog [data-action="Release others"]');
ok($browser->becomes('return document.querySelectorAll(".alert").length > 1'), 'so is the release of an allocation of root');
is(allocation_state($bus, 'others'), 'ready', 'which stays');
$browser->click('[data-allocation=mine] [data-action=Release]');
$browser->click('dialog [data-action="Release mine"]');
ok($browser->gone('[data-allocation=mine]'), 'he releases his own');
$browser->quit;
ok(end_polkitd(), 'polkit ran until now');
done_testing;
