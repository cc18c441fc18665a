//! epoll sets: level and edge triggered, one-shot, nested.

use super::{Body, Fd, Id, Kernel, SysResult};

#[derive(Default)]
pub(crate) struct Epoll {
    members: Vec<Member>,
}

struct Member {
    fd: Fd,
    id: Id,
    events: u32,
    data: u64,
    /// One-shot, and already reported.
    disabled: bool,
    /// Edge-triggered: the readiness at the last check.
    seen: u32,
}

const CONTROL: u32 = (libc::EPOLLET | libc::EPOLLONESHOT) as u32;
const ALWAYS: u32 = (libc::EPOLLERR | libc::EPOLLHUP) as u32;

impl Epoll {
    pub(super) fn forget(&mut self, id: Id) {
        self.members.retain(|member| member.id != id);
    }

    pub(super) fn describe(&self) -> String {
        let member = |member: &Member| {
            format!(
                "{}:{:#x}{}",
                member.fd - super::BASE,
                member.events,
                if member.disabled { " off" } else { "" }
            )
        };
        format!("epoll set of {:?}", self.members.iter().map(member).collect::<Vec<_>>())
    }

    pub(super) fn any_ready(&self, kernel: &Kernel, depth: u8) -> bool {
        self.members.iter().any(|member| member.ready(kernel, depth) != 0)
    }
}

impl Member {
    fn ready(&self, kernel: &Kernel, depth: u8) -> u32 {
        if self.disabled {
            return 0;
        }
        let ready = kernel.readiness(self.id, depth) & (self.events & !CONTROL | ALWAYS);
        if self.events & libc::EPOLLET as u32 != 0 && ready & !self.seen == 0 { 0 } else { ready }
    }
}

impl Kernel {
    /// epoll_ctl(2).
    pub(crate) fn epoll_control(
        &mut self,
        set: Fd,
        operation: i32,
        fd: Fd,
        events: u32,
        data: u64,
    ) -> SysResult {
        let id = self.id(fd)?;
        if matches!(self.objects[&id].body, Body::Memory(_) | Body::Text(..)) {
            return Err(libc::EPERM);
        }
        if self.id(set)? == id {
            return Err(libc::EINVAL);
        }
        if operation == libc::EPOLL_CTL_ADD && self.is_connection(id) && self.faults.resets > 0 {
            let watches = self.faults.watches;
            if self.draw_fault(watches) {
                self.faults.resets -= 1;
                return Err(libc::ENOSPC);
            }
        }
        let Body::Epoll(epoll) = self.body(set)? else { return Err(libc::EINVAL) };
        let at = epoll.members.iter().position(|member| (member.fd, member.id) == (fd, id));
        let member = Member { fd, id, events, data, disabled: false, seen: 0 };
        match (operation, at) {
            (libc::EPOLL_CTL_ADD, Some(_)) => return Err(libc::EEXIST),
            (libc::EPOLL_CTL_ADD, None) => epoll.members.push(member),
            (_, None) => return Err(libc::ENOENT),
            (libc::EPOLL_CTL_MOD, Some(at)) => epoll.members[at] = member,
            (libc::EPOLL_CTL_DEL, Some(at)) => drop(epoll.members.remove(at)),
            _ => return Err(libc::EINVAL),
        }
        self.changes += 1;
        Ok(0)
    }

    /// True if epoll_wait(2) would return an event.
    pub(crate) fn epoll_ready(&self, set: Fd) -> bool {
        let Ok(id) = self.id(set) else { return true };
        self.readiness(id, 0) & libc::EPOLLIN as u32 != 0
    }

    /// Takes events out of a set. They are not in the order of the members, because the order
    /// depends on when each became ready.
    pub(crate) fn epoll_take(&mut self, set: Fd, most: usize) -> SysResult<Vec<(u32, u64)>> {
        let id = self.id(set)?;
        let Body::Epoll(epoll) = self.body(set)? else { return Err(libc::EINVAL) };
        let mut members = std::mem::take(&mut epoll.members);
        let mut taken = Vec::new();
        let start = self.rng.below(members.len() as u64) as usize;
        for at in 0..members.len() {
            if taken.len() == most {
                break;
            }
            let place = (start + at) % members.len();
            let member = &mut members[place];
            let ready = member.ready(self, 1);
            if ready != 0 {
                taken.push((ready, member.data));
                member.seen = ready;
                member.disabled = member.events & libc::EPOLLONESHOT as u32 != 0;
            }
            if member.events & libc::EPOLLET as u32 != 0 {
                member.seen &= self.readiness(member.id, 1);
            }
        }
        if let Some(Body::Epoll(epoll)) = self.objects.get_mut(&id).map(|object| &mut object.body) {
            epoll.members = members;
        }
        Ok(taken)
    }
}
